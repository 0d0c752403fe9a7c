package podworkers

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

// do applies one event to workers, such as "update web-1 i:2", "remove web-1", "remove web-1 5", "done web-1", "fail
// web-1" or "wake web-1". The name of a pod is its UID up to the hyphen.
func do(w *Workers, second float64, words string) {
	f := strings.Fields(words)
	name, _, _ := strings.Cut(f[1], "-")
	image := ""
	if f[0] == "update" {
		image = f[2]
	}
	d := pod(name, f[1], image)
	switch f[0] {
	case "update":
		w.Update(at(second), d)
	case "remove":
		var grace *int64
		if len(f) > 2 {
			grace = new(int64)
			_, _ = fmt.Sscan(f[2], grace)
		}
		w.Remove(at(second), d, grace)
	case "wake":
		w.Wake(at(second), types.UID(f[1]))
	default:
		w.Done(at(second), types.UID(f[1]), Result{Failed: f[0] == "fail"})
	}
}

// TestCasesOfTheKubelet has the cases of pkg/kubelet/pod_workers_test.go about which pod gets which pass. Each line is
// an event, and the passes that begin or are cut short. Other tests cover these cases: TestParallel covers
// TestUpdatePodParallel, TestNextPass covers TestCompleteWork_Enqueue, TestDeletions covers
// Test_calculateEffectiveGracePeriod, and the reconciler's TestShownWhileDeleted and TestPodsOfSources cover
// TestSyncKnownPods. TestTerminalPhaseTransition and the cases of TestUpdatePod for a finished pod are about the plan
// of a pass, not about workers.
func TestCasesOfTheKubelet(t *testing.T) {
	for name, script := range map[string]string{
		"TestUpdatePod: a new pod is recorded and started": `
			update web-1 i:1 > sync web-1 i:1`,
		"TestUpdatePod: a new pod is started unless it is a duplicate of a terminating UID": `
			update web-1 i:1 > sync web-1 i:1
			done web-1 >
			remove web-1 > terminate web-1
			update web-1 i:2 >
			wake web-1 >
			fail web-1 > terminate web-1
			done web-1 > sync web-1 i:2`,
		"TestUpdatePod: a running pod is terminated by a deletion or an eviction": `
			update web-1 i:1 > sync web-1 i:1
			done web-1 >
			remove web-1 5 > terminate web-1 5s
			done web-1 >
			wake web-1 >`,
		"TestUpdatePod, TestUpdatePodForRuntimePod: an orphan that was not seen before is terminated and removed": `
			remove web-1 > terminate web-1
			done web-1 >`,
		"TestUpdatePod: an orphan is not touched without a kill": `
			wake web-1 >`,
		"TestUpdatePodForTerminatedRuntimePod: a pod that is gone is not terminated again": `
			remove web-1 > terminate web-1
			done web-1 >
			wake web-1 >
			done web-1 >`,
		"TestCompleteWork_PendingUpdate": `
			update web-1 i:1 > sync web-1 i:1
			update web-1 i:2 > cut web-1
			update web-1 i:3 >
			done web-1 > sync web-1 i:3`,
		"TestUpdatePodDoesNotForgetSyncPodKill": `
			update web-1 i:1 > sync web-1 i:1
			update web-1 i:2 > cut web-1
			remove web-1 5 >
			update web-1 i:3 >
			fail web-1 > terminate web-1 5s
			update web-1 i:4 >
			fail web-1 >
			wake web-1 > terminate web-1 5s`,
		"TestKillPodNowFunc: the time that is given counts": `
			update web-1 i:1 > sync web-1 i:1
			done web-1 >
			remove web-1 7 > terminate web-1 7s
			remove web-1 3 > cut web-1
			fail web-1 > terminate web-1 3s`,
		"TestStaticPodExclusion: another uid waits for the end, and the newest that waits comes": `
			update web-1 i:1 > sync web-1 i:1
			update db-1 i:1 > sync db-1 i:1
			done web-1 >
			remove web-1 > terminate web-1
			update web-2 i:2 >
			update web-3 i:3 >
			wake web-2 >
			wake web-3 >
			done web-1 > sync web-3 i:3
			wake web-2 >
			remove web-3 > cut web-3
			update web-4 i:4 >
			fail web-3 > terminate web-3
			done web-3 > sync web-4 i:4`,
		"TestStaticPodExclusion: a pod whose end fails keeps its name": `
			update web-1 i:1 > sync web-1 i:1
			remove web-1 > cut web-1
			update web-2 i:2 >
			fail web-1 > terminate web-1
			fail web-1 >
			wake web-2 >
			wake web-1 > terminate web-1
			done web-1 > sync web-2 i:2`,
		"Test_allowPodStart: no pod of the name": `
			update foo-1 i:1 > sync foo-1 i:1
			update bar-1 i:1 > sync bar-1 i:1`,
		"Test_allowPodStart: a pod of the name has started": `
			update foo-1 i:1 > sync foo-1 i:1
			update foo-2 i:1 >
			wake foo-2 >`,
		"Test_allowPodStart: it has started already": `
			update foo-1 i:1 > sync foo-1 i:1
			done foo-1 >
			wake foo-1 > sync foo-1 i:1`,
		"Test_allowPodStart: the first that waits is to be terminated": `
			update foo-1 i:1 > sync foo-1 i:1
			remove foo-1 > cut foo-1
			update foo-2 i:2 >
			remove foo-2 >
			update foo-3 i:3 >
			fail foo-1 > terminate foo-1
			done foo-1 > sync foo-3 i:3
			wake foo-2 >`,
		"Test_allowPodStart: one that is terminated does not start": `
			update foo-1 i:1 > sync foo-1 i:1
			done foo-1 >
			remove foo-1 > terminate foo-1
			done foo-1 >
			wake foo-1 >`,
		"Test_removeTerminatedWorker: orphaned, not started": `
			update web-1 i:1 > sync web-1 i:1
			update web-2 i:2 >
			remove web-2 >
			remove web-1 > cut web-1
			fail web-1 > terminate web-1
			done web-1 >`,
		"Test_removeTerminatedWorker: orphaned, terminating, with and without a pending update": `
			update web-1 i:1 > sync web-1 i:1
			done web-1 >
			remove web-1 > terminate web-1
			update web-1 i:2 >
			remove web-1 >
			done web-1 >
			wake web-1 >`,
	} {
		w := New(Settings{})
		for i, line := range strings.Split(strings.TrimSpace(script), "\n") {
			words, want, _ := strings.Cut(strings.TrimSpace(line), ">")
			now := float64(i)
			do(w, now, words)
			got, _, _ := strings.Cut(next(w, now), "wake")
			if got = strings.TrimSuffix(strings.TrimSpace(got), ";"); got != strings.TrimSpace(want) {
				t.Errorf("%s: after %s: %q, want %q", name, words, got, want)
			}
		}
	}
}
