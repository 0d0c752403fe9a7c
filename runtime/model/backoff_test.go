package model_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/model/modeltest"
)

func TestBackoffDoublesAndBeginsAnew(t *testing.T) {
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
