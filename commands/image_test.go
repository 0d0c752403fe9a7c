package commands

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/podctl/podctl/runtime/images"
	"github.com/podctl/podctl/runtime/model"
)

func TestImageView(t *testing.T) {
	hex := strings.Repeat("0123456789abcdef", 4)
	pod := func(name string) model.PodRef { return model.PodRef{Namespace: "default", Name: name} }
	found := []*images.Image{
		{
			ID: "sha256:" + hex, Tags: []string{"r.local/a:1", "r.local/a:2"}, Digests: []string{"r.local/a@sha256:" + hex, "r.local/b@sha256:" + hex},
			Size: 1000, UsedBy: []images.User{{Pod: pod("web"), Container: "x"}, {Pod: pod("web"), Container: "y"}}, NamedBy: []model.PodRef{pod("job")},
		},
		{ID: "sha256:" + hex, Pinned: true},
	}
	want := `REPOSITORY   TAG      DIGEST                IMAGE ID       SIZE   USED BY
r.local/a    1        sha256:0123456789ab   0123456789ab   1kB    default/job +1
r.local/a    2        sha256:0123456789ab   0123456789ab   1kB    default/job +1
r.local/b    <none>   sha256:0123456789ab   0123456789ab   1kB    default/job +1
<none>       <none>   <none>                0123456789ab   0B     the runtime
`
	var b bytes.Buffer
	if err := (&imageView{}).write(&b, found); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// TestWaiting: a terminal sees the time go by on one line, which is taken away at
// the end; elsewhere there is one plain line.
func TestWaiting(t *testing.T) {
	for tty, want := range map[bool]string{true: "\r\x1b[K\x1b[?7lpulling a …  0s\x1b[?7h\r\x1b[K", false: "pulling a\n"} {
		var b bytes.Buffer
		g := &globals{env: &Env{Err: &b, ErrTTY: tty, Now: func() time.Time { return time.Unix(0, 0) }}}
		w := g.wait("pulling a")
		w.tell("")
		w.end()
		if b.String() != want {
			t.Errorf("terminal %t: %q, want %q", tty, b.String(), want)
		}
	}
}

func TestImageUsage(t *testing.T) {
	for name, args := range map[string][]string{
		"pull of nothing":        {"image", "pull"},
		"rm of nothing":          {"image", "rm"},
		"load of nothing":        {"image", "load"},
		"save of nothing":        {"image", "save"},
		"an unknown command":     {"image", "nonsense"},
		"--pin of a pod":         {"plan", "--pin", "web"},
		"--pin without manifest": {"plan", "--pin"},
	} {
		if code, _, stderr := call(t, "", args...); code != exitError || !strings.Contains(stderr, "--help") {
			t.Errorf("%s: exit code %d\n%s", name, code, stderr)
		}
	}
}
