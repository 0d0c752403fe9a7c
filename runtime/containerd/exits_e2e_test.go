//go:build e2e

package containerd

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestRealExits checks that a real containerd reports a container that exits, with its code.
func TestRealExits(t *testing.T) {
	store, podctl := realNode(t)
	images := os.Getenv("PODCTL_IMAGES")
	for _, name := range []string{"pause.tar", "demo.tar"} {
		if err := podctl(t.Context(), "image", "load", filepath.Join(images, name)); err != nil {
			t.Fatal(err)
		}
	}
	manifest := filepath.Join(t.TempDir(), "pod.yaml")
	text := "apiVersion: v1\nkind: Pod\nmetadata: {name: exits}\nspec:\n  restartPolicy: Never\n  containers:\n" +
		"  - {name: a, image: 'registry.local/podctl/demo:1', args: [exit, --after, 300ms, '7']}\n"
	if err := os.WriteFile(manifest, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	exits := make(chan Exit, 1)
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- store.WatchExits(ctx, func(e Exit) { exits <- e }) }()
	began := time.Now()
	if err := podctl(ctx, "apply", manifest); err != nil {
		t.Fatal(err)
	}
	select {
	case e := <-exits:
		if e.Code != 7 || len(e.ContainerID) != 64 || e.At.Before(began) || e.OutOfMemory {
			t.Errorf("notified of %+v", e)
		}
	case err := <-ended:
		t.Fatalf("the stream ended: %v", err)
	}
	if err := podctl(t.Context(), "delete", "exits"); err != nil {
		t.Error(err)
	}
}
