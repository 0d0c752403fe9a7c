package mounts

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/moby/sys/mountinfo"
)

const root = "27 1 254:0 / / rw,relatime - ext4 /dev/vda rw\n"

func table(t *testing.T, text string) []*mountinfo.Info {
	t.Helper()
	all, err := mountinfo.GetMountsFromReader(strings.NewReader(text), nil)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestHiddenMounts(t *testing.T) {
	const (
		volume  = "30 27 0:40 / /s/pods/u/v rw - tmpfs tmpfs rw\n"
		bind    = "31 27 254:0 /s /s rw,relatime shared:1 - ext4 /dev/vda rw\n"
		onTop   = "32 31 0:41 / /s/pods/u/v rw - tmpfs tmpfs rw\n"
		nested  = "33 30 0:42 / /s/pods/u/v/deep rw - tmpfs tmpfs rw\n"
		stacked = "34 30 0:43 / /s/pods/u/v rw - tmpfs tmpfs rw\n"
		far     = "35 27 0:44 / /sother/v rw - tmpfs tmpfs rw\n"
	)
	for name, c := range map[string]struct {
		text string
		want []Hidden
	}{
		"nothing covers it":          {root + volume + far, nil},
		"a bind of the directory":    {root + volume + bind + far, []Hidden{{"/s/pods/u/v", "/s"}}},
		"what came later is seen":    {root + volume + bind + onTop, []Hidden{{"/s/pods/u/v", "/s"}}},
		"only what came later":       {root + bind + onTop, nil},
		"what lies in a hidden one":  {root + volume + nested + bind, []Hidden{{"/s/pods/u/v", "/s"}, {"/s/pods/u/v/deep", "/s"}}},
		"another on the same path":   {root + volume + stacked, nil},
		"what another one covers":    {root + volume + nested + stacked, []Hidden{{"/s/pods/u/v/deep", "/s/pods/u/v"}}},
		"the whole machine is bound": {root + volume + "36 27 254:0 / / rw - ext4 /dev/vda rw\n", []Hidden{{"/s/pods/u/v", "/"}}},
	} {
		if diff := cmp.Diff(c.want, hiddenBelow("/s", table(t, c.text))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestMountOfADirectory(t *testing.T) {
	all := table(t, root+"30 27 0:40 / /s rw shared:1 - tmpfs tmpfs rw\n"+
		"31 30 0:41 / /s rw - tmpfs tmpfs rw\n32 27 0:42 / /sother rw - tmpfs tmpfs rw\n")
	for dir, want := range map[string]int{"/": 27, "/a": 27, "/s": 31, "/s/a": 31, "/sother/a": 32, "/so": 27} {
		if got := mountOf(dir, all); got == nil || got.ID != want {
			t.Errorf("%s lies in %+v, want %d", dir, got, want)
		}
	}
}

// TestPrivate reads the machine's mount table, in which some mount contains the directory.
func TestPrivate(t *testing.T) {
	dir := t.TempDir()
	at, _, err := Private(dir + "/not/there")
	if err != nil || !within(dir, at) {
		t.Errorf("%s lies in %q: %v", dir, at, err)
	}
	if hidden, err := HiddenBelow(dir); err != nil || len(hidden) > 0 {
		t.Errorf("hidden below a new directory: %v, %v", hidden, err)
	}
}
