package runtime

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/podctl/podctl/runtime/executor"
	"github.com/podctl/podctl/runtime/machine"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/observe"
)

// TestPassesBesideALiveKubelet checks that beside a kubelet nothing starts and nothing is recorded, unless
// the user allows it. Passes without changes and deletions work.
func TestPassesBesideALiveKubelet(t *testing.T) {
	f := newFaultLab(t, faultShape{})
	d := f.load(tripPod("web"))
	f.restart(f.engine.Client, func(s *Settings) {
		s.Kubelet = func() error { return &observe.LiveKubeletError{Kubelet: machine.Kubelet{Process: "kubelet", PID: 42}} }
	})
	refused := func(want bool, opts executor.Options) {
		t.Helper()
		_, err := f.engine.Pods.Apply(t.Context(), d, opts)
		live := (*observe.LiveKubeletError)(nil)
		if errors.As(err, &live) != want || (!want && err != nil) {
			t.Errorf("error %v, want a refusal: %v", err, want)
		}
		if want && !strings.Contains(err.Error(), "--allow-kubelet") {
			t.Errorf("%v has no advice", err)
		}
	}
	f.proxy.Reset()
	refused(true, executor.Options{})
	if calls := f.proxy.Calls(); slices.Contains(calls, "RunPodSandbox") {
		t.Errorf("a refused pass made the calls %v", calls)
	}
	if checkpoint, err := f.layout.Pod(d.Pod.UID).Checkpoint().Read(); err != nil || checkpoint.Applied != nil {
		t.Errorf("a refused pass wrote down that it was applied: %v", err)
	}
	refused(false, executor.Options{AllowKubelet: true})
	refused(false, executor.Options{})
	if _, err := f.engine.Pods.Delete(t.Context(), model.RefOf(d.Pod), executor.Options{}); err != nil {
		t.Error(err)
	}
}
