package model

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestMemoryInBoot(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	failed := StartError{Reason: "ErrImagePull", Message: "m", At: at}
	delayed := failed.Postponed("i", "c", StartError{})
	recorded := func(boot string) Memory {
		return Memory{
			Generation: 7, BootID: boot, Backoffs: map[string]Backoff{"a": {Duration: time.Minute, LastUpdate: at}},
			StartErrors: map[string]StartError{"b": delayed},
		}
	}
	forgotten := Memory{
		Generation: 7, BootID: "2", Backoffs: map[string]Backoff{}, StartErrors: map[string]StartError{"b": failed},
	}
	for name, c := range map[string]struct {
		before Memory
		boot   string
		after  Memory
	}{
		"same boot":             {recorded("2"), "2", recorded("2")},
		"another boot":          {recorded("1"), "2", forgotten},
		"no record of the boot": {recorded(""), "2", recorded("2")},
		"unknown boot":          {recorded("1"), "", recorded("1")},
		"nothing recorded":      {Memory{}, "2", Memory{BootID: "2"}},
	} {
		if diff := cmp.Diff(c.after, c.before.InBoot(c.boot)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	before := recorded("1")
	before.InBoot("2")
	if diff := cmp.Diff(recorded("1"), before); diff != "" {
		t.Errorf("the earlier memory changed (-want +got):\n%s", diff)
	}
}
