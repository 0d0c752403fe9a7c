package runtime

import (
	"errors"
	"os"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/executor"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/observe"
	"github.com/podctl/podctl/runtime/plan"
	"github.com/podctl/podctl/runtime/probe"
	"github.com/podctl/podctl/runtime/remote"
)

func podNamed(name string, uid types.UID) *v1.Pod {
	return &v1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: uid},
		Spec:       v1.PodSpec{Containers: []v1.Container{{Name: "app", Image: "i:1"}}},
	}
}

// TestUIDOfAnotherPodIsRefused checks that a manifest with the UID of another pod, which is predictable, cannot access
// that pod. It is enough that podctl or the runtime has a record of the pod.
func TestUIDOfAnotherPodIsRefused(t *testing.T) {
	for name, forget := range map[string]bool{"remembered": false, "only in the runtime": true} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, "i:1")
			web := l.manifest(podNamed("web", ""))
			if _, err := l.pass(web); err != nil {
				t.Fatal(err)
			}
			if forget {
				if err := os.Remove(l.layout.Pod(web.Pod.UID).Checkpoint().Path()); err != nil {
					t.Fatal(err)
				}
			}
			l.refuses(t, l.manifest(podNamed("evil", web.Pod.UID)))
			if len(l.server.Created().Containers) != 1 {
				t.Errorf("containers were created: %v", l.server.Created())
			}
			if p, err := l.engine.Pods.Plan(t.Context(), web, plan.Options{}); err != nil || len(p.Steps) > 0 && !forget {
				t.Errorf("the pod itself: %v %v", p, err)
			}
		})
	}
}

// refuses tries every operation on a pod by its manifest.
func (l *lab) refuses(t *testing.T, evil *podspec.Desired) {
	t.Helper()
	ref := model.RefOf(evil.Pod)
	tries := map[string]func() error{
		"plan":          func() error { _, err := l.engine.Pods.Plan(t.Context(), evil, plan.Options{}); return err },
		"apply":         func() error { _, err := l.engine.Pods.Apply(t.Context(), evil, executor.Options{}); return err },
		"delete":        func() error { _, err := l.engine.Pods.Delete(t.Context(), ref, executor.Options{}); return err },
		"plan deletion": func() error { _, err := l.engine.Pods.PlanDeletion(t.Context(), ref, plan.Options{}); return err },
		"get":           func() error { _, err := l.engine.Lister.List(t.Context(), []*podspec.Desired{evil}); return err },
		"probe":         func() error { _, err := l.engine.Prober.Probe(t.Context(), evil, probe.Options{}); return err },
		"snapshot":      func() error { _, err := l.engine.Observer.Snapshot(t.Context(), evil); return err },
		"exec and logs": func() error { _, err := l.engine.Observer.ListNewestFirst(t.Context(), ref); return err },
		"port-forward":  func() error { return l.engine.Sessions.PortForward(t.Context(), evil, &remote.Forwarding{}) },
		"debug":         func() error { _, err := l.engine.Sessions.WithDebug(t.Context(), evil); return err },
	}
	for name, try := range tries {
		err := try()
		taken := (*observe.UIDTakenError)(nil)
		if !errors.As(err, &taken) || !strings.Contains(err.Error(), "which is that of pod default/web") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
