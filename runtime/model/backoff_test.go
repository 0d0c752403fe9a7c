package model_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/model/modeltest"
)

func TestBackoffDoublesAndResets(t *testing.T) {
	var b model.Backoff
	at := modeltest.Noon()
	var delays []time.Duration
	for range 7 {
		if until := b.Until(at); !until.IsZero() {
			delays = append(delays, until.Sub(at))
			at = until
		}
		b = b.Advance(at, at)
		at = at.Add(time.Second)
	}
	want := []time.Duration{10, 20, 40, 80, 160, 300}
	for i := range want {
		want[i] *= time.Second
	}
	if diff := cmp.Diff(want, delays); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if until := b.Until(b.LastUpdate.Add(601 * time.Second)); !until.IsZero() {
		t.Errorf("a run of more than ten minutes did not end the delay: %s", until)
	}
}

// TestPullsAndTheClock checks that a failed pull holds the next one for its back-off, unless the clock was set back and
// the failure is in the future.
func TestPullsAndTheClock(t *testing.T) {
	failed := time.Unix(1e9, 0)
	e := model.StartError{At: failed}.Postponed("i:1", "", model.StartError{})
	for after, holds := range map[time.Duration]bool{0: true, 9 * time.Second: true, 10 * time.Second: false, -time.Hour: false} {
		if got := e.Holds(failed.Add(after)); got != holds {
			t.Errorf("%s after it failed it holds the next try: %t", after, got)
		}
	}
}

// TestFailuresOfPulls checks that the back-off of an image doubles with each failed try with the same credentials, and
// that one try may fail for several containers.
func TestFailuresOfPulls(t *testing.T) {
	at, all := time.Unix(1e9, 0), map[string]model.StartError{}
	fail := func(container, credentials string, after time.Duration) time.Duration {
		at = at.Add(after)
		all[container] = model.StartError{At: at}.Postponed("i:1", credentials, model.PullFailure(all, "i:1", credentials))
		return all[container].Until.Sub(at)
	}
	for i, c := range []struct {
		container, credentials string
		after, want            time.Duration
	}{
		{"a", "", 0, 10 * time.Second},
		{"b", "", time.Second, 9 * time.Second},
		{"b", "", 9 * time.Second, 20 * time.Second},
		{"a", "", 20 * time.Second, 40 * time.Second},
		{"a", "other", time.Second, 10 * time.Second},
		{"a", "other", time.Hour, 20 * time.Second},
	} {
		if got := fail(c.container, c.credentials, c.after); got != c.want {
			t.Errorf("%d: the next try is %s later, want %s", i, got, c.want)
		}
	}
}
