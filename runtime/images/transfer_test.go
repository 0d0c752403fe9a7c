package images

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/podctl/podctl/runtime/containerd"
	"github.com/podctl/podctl/runtime/cri"
	"github.com/podctl/podctl/runtime/runtimetest"
	"github.com/podctl/podctl/runtime/state"
)

// newStore returns the images of an in-memory runtime, which is not containerd.
func newStore(t *testing.T, names ...string) *Store {
	t.Helper()
	_, _, endpoint := runtimetest.Start(t, names...)
	client, err := cri.Connect(cri.Endpoint{Address: endpoint, Origin: "test"}, "", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return NewStore(client, state.Layout{Root: t.TempDir(), LogRoot: t.TempDir()})
}

// TestOtherRuntimes checks that operations that require containerd are refused with advice, and that a pull works
// without progress.
func TestOtherRuntimes(t *testing.T) {
	e := newStore(t, "registry.local/a:1")
	_, err := e.Load(t.Context(), strings.NewReader("x"))
	if refused := (*containerd.NotContainerdError)(nil); !errors.As(err, &refused) || !strings.Contains(err.Error(), "skopeo") {
		t.Errorf("load: %v", err)
	}
	err = e.Save(t.Context(), &bytes.Buffer{}, []string{"registry.local/a:1"})
	if refused := (*containerd.NotContainerdError)(nil); !errors.As(err, &refused) {
		t.Errorf("save: %v", err)
	}
	two := &Image{ID: "sha256:1", Tags: []string{"registry.local/a:1", "registry.local/a:2"}}
	if _, err = e.Untag(t.Context(), two, "registry.local/a:1"); err == nil ||
		!strings.Contains(err.Error(), "remove it by its id sha256:1") ||
		!strings.Contains(err.Error(), "registry.local/a:2") {
		t.Errorf("rm of one name: %v", err)
	}
	info, err := e.Pull(t.Context(), Request{Image: "registry.local/b:1"}, func(p PullProgress) { t.Errorf("progress %+v", p) })
	if err != nil || info.ID == "" {
		t.Errorf("pull: %+v %v", info, err)
	}
}

func TestDownloads(t *testing.T) {
	type set = map[string]containerd.Download
	part := func(done, total int64) containerd.Download { return containerd.Download{Done: done, Total: total} }
	d := &downloads{before: set{"old": part(5, 10)}, seen: set{}}
	for i, c := range []struct {
		now  set
		want PullProgress
	}{
		{set{"old": part(5, 10)}, PullProgress{}},
		{set{"old": part(5, 10), "a": part(1, 4)}, PullProgress{1, 4, 1}},
		{set{"old": part(6, 10), "a": part(2, 4), "b": part(3, 0)}, PullProgress{11, 17, 3}},
		{set{"old": part(7, 10)}, PullProgress{14, 17, 3}},
	} {
		if diff := cmp.Diff(c.want, d.advance(c.now)); diff != "" {
			t.Errorf("step %d: (-want +got)\n%s", i, diff)
		}
	}
}

func TestFindImage(t *testing.T) {
	const hex = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	images := []*Image{
		{
			ID:      "sha256:" + hex,
			Tags:    []string{"docker.io/library/web:latest", "r.local/web:1"},
			Digests: []string{"docker.io/library/web@sha256:" + hex},
		},
		{ID: "sha256:01ff", Tags: []string{"r.local/b:1"}},
	}
	for name, want := range map[string]int{
		"web": 0, "docker.io/library/web": 0, "r.local/web:1": 0, "sha256:" + hex: 0, "0123": 0, "web@sha256:" + hex: 0, "01f": 1,
		"web:2": -1, "01": -1, "": -1,
	} {
		got, err := Find(images, name)
		if (want < 0) != (err != nil) || (want >= 0 && got != images[want]) {
			t.Errorf("%q: %+v %v", name, got, err)
		}
	}
	for asked, want := range map[string]string{
		"web":           "r.local/web:1",
		"0123":          "",
		"r.local/web:1": "docker.io/library/web:latest docker.io/library/web@sha256:" + hex,
	} {
		if got := strings.Join(images[0].OtherNames(asked), " "); got != want {
			t.Errorf("beside %s: %q, want %q", asked, got, want)
		}
	}
}

// TestRemovedNames checks that a single name is removed, and the digests of a repository with its last tag.
func TestRemovedNames(t *testing.T) {
	digest := "@sha256:" + strings.Repeat("a", 64)
	img := &Image{Tags: []string{"r.io/a:1", "r.io/a:2", "r.io/b:1"}, Digests: []string{"r.io/a" + digest, "r.io/b" + digest}}
	for asked, want := range map[string][]string{
		"r.io/a:1":        {"r.io/a:1"},
		"r.io/b:1":        {"r.io/b:1", "r.io/b" + digest},
		"r.io/b" + digest: {"r.io/b" + digest},
	} {
		if diff := cmp.Diff(want, img.namesOf(asked)); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", asked, diff)
		}
	}
}
