package syncpod

import (
	"errors"
	"strings"
	"testing"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/executor"
	"github.com/podctl/podctl/runtime/model"
)

// TestPodsOfTheAPIServer checks that a pass over a pod of the API server needs permission, whatever manifest it has,
// and that a refused one changes nothing.
func TestPodsOfTheAPIServer(t *testing.T) {
	l := newLab(t, "i:1")
	own := loadPod(t, web)
	own.Owner = podspec.OwnerAPI
	allowed := executor.Options{ClusterPods: true}
	if o, err := l.Apply(t.Context(), own, allowed); err != nil || o.Err() != nil {
		t.Fatal(err, o.Err())
	}
	ref, calls := model.RefOf(own.Pod), len(l.server.Calls())
	refuses := func(err error, command string) {
		t.Helper()
		refused := (*ClusterPodError)(nil)
		if !errors.As(err, &refused) || !strings.Contains(err.Error(), command) {
			t.Errorf("%v, want %s", err, command)
		}
	}
	_, err := l.Apply(t.Context(), own, executor.Options{})
	refuses(err, "`kubectl -n default edit pod web`")
	_, err = l.Apply(t.Context(), loadPod(t, web), executor.Options{})
	refuses(err, "`kubectl -n default edit pod web`")
	_, err = l.Delete(t.Context(), ref, executor.Options{})
	refuses(err, "`kubectl -n default delete pod web`")
	for _, call := range l.server.Calls()[calls:] {
		if strings.HasPrefix(call, "Stop") || strings.HasPrefix(call, "Remove") || strings.HasPrefix(call, "Run") {
			t.Errorf("a refused pass calls %s", call)
		}
	}
	if o, err := l.Delete(t.Context(), ref, allowed); err != nil || o.Err() != nil {
		t.Error(err, o.Err())
	}
}
