package state

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/types"
)

// TestEveryPodHasItsOwnIDs checks that each range is assigned to one pod only, also for parallel requests, and is free
// again after the pod.
func TestEveryPodHasItsOwnIDs(t *testing.T) {
	l := newLayout(t)
	var mu sync.Mutex
	owner := map[uint32]types.UID{}
	var group sync.WaitGroup
	for _, uid := range []types.UID{"a", "b", "c", "d", "e", "f"} {
		group.Go(func() {
			r, err := l.Pod(uid).IDs().Allocate(t.Context())
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
	first, err := l.Pod("a").IDs().Allocate(t.Context())
	if err != nil || owner[first.First] != "a" {
		t.Errorf("read again: %+v %v", first, err)
	}
	if err := os.RemoveAll(l.Pod("a").Dir()); err != nil {
		t.Fatal(err)
	}
	if again, err := l.Pod("g").IDs().Allocate(t.Context()); err != nil || again != first {
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
}

// TestRangesDoNotOverlap checks that ranges assigned with other bounds are avoided completely, for any start and
// length.
func TestRangesDoNotOverlap(t *testing.T) {
	for name, c := range map[string]struct {
		taken  []IDRange
		bounds IDRange
		want   uint32
	}{
		"nothing is taken":             {nil, IDRange{100000, 65536}, 100000},
		"one of other bounds":          {[]IDRange{{65536, 65536}}, IDRange{100000, 655360}, 165536},
		"one across two":               {[]IDRange{{131072, 65536}}, IDRange{100000, 655360}, 231072},
		"a long one":                   {[]IDRange{{65536, 4 * 65536}}, IDRange{65536, 655360}, 5 * 65536},
		"one that ends where it began": {[]IDRange{{65536, 65536}}, IDRange{131072, 65536}, 131072},
		"one at the end of all ids":    {[]IDRange{{1<<32 - 65536, 65536}}, IDRange{65536, 65536}, 65536},
		"all are taken":                {[]IDRange{{131072, 65536}, {196608, 65536}}, IDRange{131072, 131072}, 0},
		"none is left as a whole":      {[]IDRange{{65536, 65536}}, IDRange{100000, 65536}, 0},
	} {
		r, err := freeRange(c.taken, c.bounds)
		if r.First != c.want || (err == nil) != (c.want != 0) {
			t.Errorf("%s: %+v %v, want %d", name, r, err, c.want)
		}
	}
}

// TestRangesThatCannotBeRead checks that an unreadable range is reported with its file and advice, and that no other
// pod gets ids meanwhile.
func TestRangesThatCannotBeRead(t *testing.T) {
	for text, wantMessage := range map[string]string{
		"":   "unexpected end of JSON input",
		"{}": "it has 0 ranges, and one is expected",
		`{"uidMappings":[{"hostId":65536,"length":65536},{"hostId":231072,"length":65536}]}`: "it has 2 ranges, and one is expected",
	} {
		l := newLayout(t)
		damaged := l.Pod("a")
		if _, err := damaged.IDs().Allocate(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(damaged.IDs().Path(), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, _, own := damaged.IDs().Read()
		_, others := l.Pod("b").IDs().Allocate(t.Context())
		for _, err := range []error{own, others} {
			for _, part := range []string{damaged.IDs().Path(), "it is damaged", wantMessage, "delete the pod"} {
				if err == nil || !strings.Contains(err.Error(), part) || strings.Contains(err.Error(), "%!") {
					t.Errorf("%q: %v lacks %q", text, err, part)
				}
			}
		}
	}
}

// TestRangeFile checks that the umask does not affect the file's mode, and that it is written beside its final path,
// not in a public directory. Leftovers of a killed process are removed with the next lock.
func TestRangeFile(t *testing.T) {
	defer unix.Umask(unix.Umask(0o077))
	l, everybodys, longAgo := newLayout(t), t.TempDir(), time.Unix(1000, 0)
	t.Setenv("TMPDIR", everybodys)
	if err := os.Chtimes(everybodys, longAgo, longAgo); err != nil {
		t.Fatal(err)
	}
	pod := l.Pod("a")
	if _, err := pod.IDs().Allocate(t.Context()); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(pod.IDs().Path()); err != nil || info.Mode().Perm() != 0o644 {
		t.Errorf("%v %v", info.Mode(), err)
	}
	if info, err := os.Stat(everybodys); err != nil || !info.ModTime().Equal(longAgo) {
		t.Errorf("something was written in %s: %v", everybodys, err)
	}
	left := filepath.Join(pod.Dir(), ".userns12345")
	if err := os.WriteFile(left, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	lock, err := pod.Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := lock.Unlock(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(left); err == nil {
		t.Error("an unfinished file is left")
	}
}
