package state

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/podctl/podctl/runtime/imageaccess"
)

// TestPulledImages checks that a recorded image is listed until it is forgotten, for any form of id, and that other
// files are ignored.
func TestPulledImages(t *testing.T) {
	s := newLayout(t).PulledImages()
	if names, err := s.List(); err != nil || len(names) != 0 {
		t.Errorf("at first: %v %v", names, err)
	}
	ids := []string{"sha256:0123", "../../etc/passwd", ""}
	for _, id := range append(ids, ids[0]) {
		if err := s.Add(id); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(s.dir(), "theirs"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	names, err := s.List()
	if err != nil || len(names) != len(ids) {
		t.Errorf("noted are %v %v", names, err)
	}
	for _, id := range append(ids, "never noted") {
		if names[PulledName(id)] == (id == "never noted") {
			t.Errorf("%q is listed: %t", id, names[PulledName(id)])
		}
		if err := s.Forget(PulledName(id)); err != nil {
			t.Error(err)
		}
	}
	if names, err := s.List(); err != nil || len(names) != 0 {
		t.Errorf("in the end: %v %v", names, err)
	}
}

// TestPullRecords checks that the record of an image lasts until the image is removed. A pull that is under way, and
// each unreadable file, count as a pull with unknown credentials.
func TestPullRecords(t *testing.T) {
	const image, id = "registry.local/app:1", "sha256:0123"
	l := newLayout(t)
	r := NewPullRecords(l)
	own := imageaccess.Secret{UID: "u", Namespace: "default", Name: "s", CredentialHash: "h"}
	check := func(step string, pulled, allowed bool) {
		t.Helper()
		// Another process reads the same.
		got := NewPullRecords(l).Read(image, id)
		if got.Pulled != pulled || (imageaccess.Policy{}).Unverified(got, []imageaccess.Secret{own}) != (pulled && !allowed) {
			t.Errorf("%s: %+v", step, got)
		}
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	add := func() { must(r.Add(image, id, imageaccess.Of(&own), time.Unix(1, 0))) }
	check("at first", false, false)
	must(r.Begin(image))
	must(r.Begin(image))
	check("two pulls", true, false)
	must(r.End(image, PullFailed))
	check("one has failed", true, false)
	must(r.End(image, PullFailed))
	check("both have failed", false, false)
	must(r.Begin(image))
	must(r.End(image, PullUnrecorded))
	check("a pull without a record", true, false)
	must(r.Begin(image))
	must(r.End(image, PullFailed))
	check("a failed pull after it", true, false)
	r = NewPullRecords(l)
	must(r.Begin(image))
	must(r.End(image, PullFailed))
	check("a failed pull of the next process", true, false)
	must(r.Begin(image))
	add()
	must(r.End(image, PullRecorded))
	check("a pull", true, true)
	if left, err := os.ReadDir(filepath.Dir(r.pullingPath(image))); err != nil || len(left) != 0 {
		t.Errorf("marks %v %v", left, err)
	}
	if info, err := os.Stat(r.pulledPath(id)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v %v", info, err)
	}
	for name, text := range map[string][]byte{
		"empty": nil, "no JSON": []byte("{"), "too long": bytes.Repeat([]byte(" "), pullRecordMax+1),
	} {
		must(os.WriteFile(r.pulledPath(id), text, 0o600))
		check(name, true, false)
		add()
		check("after "+name, true, true)
	}
	must(os.Remove(r.pulledPath(id)))
	must(os.Symlink("/etc/passwd", r.pulledPath(id)))
	check("a link", true, false)
	add()
	must(r.Prune(map[string]bool{PulledName(id): true}, time.Now().Add(time.Hour)))
	must(r.Prune(nil, time.Now().Add(-time.Hour)))
	check("images present or new", true, true)
	must(r.Prune(nil, time.Now().Add(time.Hour)))
	check("an image that is gone", false, false)
}

// TestPullsOfTwoProcesses checks that no process removes the mark of another one, in any order of their begins and ends. After
// a failure the mark stays, because the other process may have ended without a record.
func TestPullsOfTwoProcesses(t *testing.T) {
	const image = "registry.local/app:1"
	ends := []PullEnd{PullFailed, PullRecorded, PullUnrecorded}
	for i := range 2 * len(ends) * len(ends) {
		reversed, first, second := i%2 > 0, ends[i/2%len(ends)], ends[i/2/len(ends)]
		l := newLayout(t)
		both := []*PullRecords{NewPullRecords(l), NewPullRecords(l)}
		err := errors.Join(both[0].Begin(image), both[1].Begin(image))
		if reversed {
			slices.Reverse(both)
		}
		err = errors.Join(err, both[0].End(image, first))
		during := NewPullRecords(l).Read(image, "id").Pulled
		err = errors.Join(err, both[1].End(image, second))
		after := NewPullRecords(l).Read(image, "id").Pulled
		if err != nil || !during || after != (second != PullRecorded) {
			t.Errorf("%t, ends %d and %d: %v, marked %t and %t", reversed, first, second, err, during, after)
		}
	}
}

// TestSettle checks marks of killed pulls. An image that is present gets a record with which no pod may use it without a
// pull, also by another name. Marks of pulls under way, of new pulls of absent images, and damaged ones stay.
func TestSettle(t *testing.T) {
	const image, other, id = "registry.local/app:1", "registry.local/app@sha256:0123", "sha256:0123"
	failed := errors.New("injected failure")
	for name, c := range map[string]struct {
		runs    bool // The pull has not ended.
		id      string
		err     error
		old     bool
		damaged bool
		pulled  bool // The image counts as pulled, by its name and by another one.
		stays   bool // The mark stays.
	}{
		"present":                 {id: id, pulled: true},
		"absent":                  {old: true},
		"absent, and new":         {stays: true},
		"under way":               {runs: true, id: id, old: true, stays: true},
		"the runtime fails":       {err: failed, old: true, stays: true},
		"damaged":                 {damaged: true, id: id, old: true, stays: true},
		"present, and not so new": {id: id, old: true, pulled: true},
	} {
		l := newLayout(t)
		r := NewPullRecords(l)
		err := r.Begin(image)
		if !c.runs {
			err = errors.Join(err, r.End(image, PullUnrecorded))
		}
		if c.damaged {
			err = errors.Join(err, os.WriteFile(r.pullingPath(image), nil, 0o600))
		}
		if err != nil {
			t.Fatal(err)
		}
		until := time.Now().Add(-time.Hour)
		if c.old {
			until = time.Now().Add(time.Hour)
		}
		next := NewPullRecords(l)
		err = next.Settle(until, func(string) (string, error) { return c.id, c.err })
		if !errors.Is(err, c.err) {
			t.Errorf("%s: %v", name, err)
		}
		got := next.Read(other, id)
		if got.Pulled != c.pulled || c.pulled && !(imageaccess.Policy{}).Unverified(got, nil) {
			t.Errorf("%s: %+v", name, got)
		}
		if _, err = os.Stat(r.pullingPath(image)); (err == nil) != c.stays {
			t.Errorf("%s: the mark: %v", name, err)
		}
	}
	if err := NewPullRecords(newLayout(t)).Settle(time.Now(), nil); err != nil {
		t.Errorf("without marks: %v", err)
	}
}

// TestMarksInParallel checks marks that are created while others remove them.
func TestMarksInParallel(t *testing.T) {
	const image = "registry.local/app:1"
	l := newLayout(t)
	var processes sync.WaitGroup
	for range 4 {
		processes.Go(func() {
			r := NewPullRecords(l)
			for range 50 {
				err := r.Begin(image)
				if !r.Read(image, "id").Pulled {
					t.Error("a pull without a mark")
				}
				if err = errors.Join(err, r.End(image, PullRecorded)); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	processes.Wait()
	if NewPullRecords(l).Read(image, "id").Pulled {
		t.Error("the mark stays")
	}
}

// TestPullRecordsWhileAPullEnds checks that an image never looks preloaded while its pull ends.
func TestPullRecordsWhileAPullEnds(t *testing.T) {
	const image, id = "registry.local/app:1", "sha256:0123"
	l := newLayout(t)
	r := NewPullRecords(l)
	for range 30 {
		ended := make(chan error, 1)
		if err := r.Begin(image); err != nil {
			t.Fatal(err)
		}
		go func() {
			ended <- errors.Join(r.Add(image, id, imageaccess.Of(nil), time.Unix(1, 0)), r.End(image, PullRecorded))
		}()
		for running := true; running; {
			select {
			case err := <-ended:
				if err != nil {
					t.Fatal(err)
				}
				running = false
			default:
				if !r.Read(image, id).Pulled {
					t.Fatal("the image looks preloaded")
				}
			}
		}
		if err := r.Prune(nil, time.Now().Add(time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
}
