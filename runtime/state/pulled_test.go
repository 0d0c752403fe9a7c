package state

import (
	"os"
	"path/filepath"
	"testing"
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
