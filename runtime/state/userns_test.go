package state

import (
	"os"
	"path/filepath"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

// TestEveryPodHasItsOwnIDs: ranges are given once, to one pod each, also when many
// ask at once, and are free again with the pod.
func TestEveryPodHasItsOwnIDs(t *testing.T) {
	l := newLayout(t)
	var mu sync.Mutex
	owner := map[uint32]types.UID{}
	var group sync.WaitGroup
	for _, uid := range []types.UID{"a", "b", "c", "d", "e", "f"} {
		group.Go(func() {
			r, err := l.Pod(uid).GiveIDs(t.Context())
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			if other, twice := owner[r.First]; twice {
				t.Errorf("%s and %s have the ids from %d", uid, other, r.First)
			}
			if owner[r.First] = uid; r.First%idRangeLength != 0 || r.Length != idRangeLength {
				t.Errorf("%s has %+v", uid, r)
			}
		})
	}
	group.Wait()
	first, err := l.Pod("a").GiveIDs(t.Context())
	if err != nil || owner[first.First] != "a" {
		t.Errorf("asked again: %+v %v", first, err)
	}
	if err := os.RemoveAll(l.Pod("a").Dir()); err != nil {
		t.Fatal(err)
	}
	if again, err := l.Pod("g").GiveIDs(t.Context()); err != nil || again != first {
		t.Errorf("the range of a pod that is gone: %+v %v, %+v is wanted", again, err, first)
	}
}

func TestSubordinateIDs(t *testing.T) {
	path := filepath.Join(t.TempDir(), "subuid")
	for text, want := range map[string]IDRange{
		"":                        {idRangeFirst, idRangeLast - idRangeFirst},
		"root:1:2\n":              {idRangeFirst, idRangeLast - idRangeFirst},
		"kubelet:131072:131072\n": {131072, 131072},
		"kubelet:x:1\n":           {idRangeFirst, idRangeLast - idRangeFirst},
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := subordinateIDs(path); got != want {
			t.Errorf("%q: %+v, want %+v", text, got, want)
		}
	}
	if _, err := freeRange([]uint32{131072, 196608}, IDRange{131072, 131072}); err == nil {
		t.Error("a range is free where all are taken")
	}
}
