package syncpod

import (
	"strings"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/podctl/podctl/runtime/admission"
	"github.com/podctl/podctl/runtime/criconfig"
	"github.com/podctl/podctl/runtime/executor"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/plan"
)

// admits returns the options of a pass that admits pods, and admits rejected ones again.
func admits() executor.Options {
	return executor.Options{Options: plan.Options{Admission: &plan.Admission{Settings: admission.Settings{MaxPods: 110}}}}
}

// sized returns a pod that requests the given number of cores.
func sized(name, cores string) string {
	text := strings.Replace(web, "name: web", "name: "+name, 1)
	return strings.Replace(text, "image: 'i:1'", "image: 'i:1', resources: {requests: {cpu: "+cores+"}}", 1)
}

// TestAdmission checks that of pods that are applied at once only those that fit together are created. A rejected pod
// is created by a later request if it fits. A pod that grows too much continues as it is, also when its containers end.
func TestAdmission(t *testing.T) {
	l := newLabOn(t, criconfig.Node{Name: "node", Allocatable: v1.ResourceList{v1.ResourceCPU: resource.MustParse("4")}}, "i:1")
	names := []string{"a", "b", "c", "d", "e"}
	var group sync.WaitGroup
	for _, name := range names {
		group.Go(func() {
			if _, err := l.Apply(t.Context(), loadPod(t, sized(name, "2")), admits()); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	var runs, rejected []string
	for _, name := range names {
		c, err := l.layout.Pod(loadPod(t, sized(name, "2")).Pod.UID).Checkpoint().Read()
		switch {
		case err != nil || c.Applied == nil:
			t.Fatal(name, err)
		case c.Rejection != nil && c.Completion == nil && c.LastRun == nil:
			rejected = append(rejected, name)
		case c.LastRun != nil && c.LastRun.Sandbox != "":
			runs = append(runs, name)
		}
	}
	if len(runs) != 2 || len(rejected) != 3 {
		t.Fatalf("%v run, and %v are rejected", runs, rejected)
	}
	edit := loadPod(t, sized(runs[0], "3"))
	outcome, err := l.Apply(t.Context(), edit, admits())
	if err != nil || len(outcome.Plan.Steps) > 0 || !outcome.Plan.Refused() || outcome.Desired.SameManifest(edit) {
		t.Errorf("an edit: %+v, %v", outcome.Plan, err)
	}
	if c, readErr := l.layout.Pod(edit.Pod.UID).Checkpoint().Read(); readErr != nil || c.Applied.SameManifest(edit) || c.Generation != 1 {
		t.Errorf("recorded: %v", readErr)
	}
	second := model.RefOf(loadPod(t, sized(runs[1], "2")).Pod)
	if outcome, err = l.Delete(t.Context(), second, executor.Options{}); err != nil || outcome.Err() != nil {
		t.Fatal(err, outcome.Err())
	}
	if outcome, err = l.Apply(t.Context(), edit, admits()); err != nil || kinds(outcome.Plan) != "UpdateContainer UpdatePod" {
		t.Errorf("the edit with enough resources: %s, %v", kinds(outcome.Plan), err)
	}
	if outcome, err = l.Apply(t.Context(), loadPod(t, sized(rejected[0], "2")), admits()); err != nil || outcome.Plan.Rejection == nil {
		t.Errorf("one core is free, not two: %v", err)
	}
	if outcome, err = l.Apply(t.Context(), loadPod(t, sized(rejected[0], "1")), admits()); err != nil ||
		outcome.Plan.Rejection != nil || !strings.Contains(kinds(outcome.Plan), "StartContainer") {
		t.Errorf("one core: %s, %v", kinds(outcome.Plan), err)
	}
}

// TestAdmissionIsLocked checks that the lock is held from reading the resources of others until the result is recorded,
// and not longer.
func TestAdmissionIsLocked(t *testing.T) {
	l := newLabOn(t, criconfig.Node{Name: "node"}, "i:1")
	l.locker.Timeout = 20 * time.Millisecond
	ref := model.PodRef{Name: "other", UID: "other-0000"}
	locked := func() bool {
		free, err := l.locker.ReserveNode(t.Context(), ref)
		if err == nil {
			free()
		}
		return err != nil
	}
	opts, planned, after := admits(), false, true
	opts.Planned = func(*plan.Plan) { planned = locked() }
	opts.Report = func(e executor.Event) { after = after && !locked() }
	if _, err := l.Apply(t.Context(), loadPod(t, web), opts); err != nil || !planned || !after || locked() {
		t.Errorf("locked while it is planned: %t, free after it: %t, %v", planned, after, err)
	}
	planned = false
	if _, err := l.Apply(t.Context(), loadPod(t, web), opts); err != nil || planned {
		t.Errorf("an admitted pod does not wait: %t, %v", planned, err)
	}
}
