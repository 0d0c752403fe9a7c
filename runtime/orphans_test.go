package runtime

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/criconfig"
	"github.com/podctl/podctl/runtime/executor"
	"github.com/podctl/podctl/runtime/gc"
	"github.com/podctl/podctl/runtime/model"
)

// runKubelets runs a pod as a kubelet does, with its directory and a log.
func (l *lab) runKubelets(ref model.PodRef) {
	l.t.Helper()
	labels := map[string]string{
		criconfig.LabelPodName: ref.Name, criconfig.LabelPodNamespace: ref.Namespace, criconfig.LabelPodUID: string(ref.UID),
	}
	pod := l.layout.Pod(ref.UID)
	logs := ok(pod.Logs(ref.Namespace, ref.Name).Dir())
	files := filepath.Join(pod.Volumes(), "kubernetes.io~empty-dir", "v")
	for _, dir := range []string{files, filepath.Join(logs, "a")} {
		if err := os.MkdirAll(dir, 0o750); err != nil {
			l.t.Fatal(err)
		}
	}
	sandbox, err := l.engine.Client.RunPodSandbox(l.t.Context(), &runtimeapi.RunPodSandboxRequest{Config: &runtimeapi.PodSandboxConfig{
		Metadata: &runtimeapi.PodSandboxMetadata{Name: ref.Name, Namespace: ref.Namespace, Uid: string(ref.UID)},
		Labels:   labels, Annotations: map[string]string{podspec.AnnotationConfigSource: "api"}, LogDirectory: logs,
	}})
	if err != nil {
		l.t.Fatal(err)
	}
	labels[criconfig.LabelContainerName] = "a"
	created, err := l.engine.Client.CreateContainer(l.t.Context(), &runtimeapi.CreateContainerRequest{
		PodSandboxId: sandbox.GetPodSandboxId(),
		Config: &runtimeapi.ContainerConfig{
			Metadata: &runtimeapi.ContainerMetadata{Name: "a"}, Image: &runtimeapi.ImageSpec{Image: "i:1"}, Labels: labels,
			Annotations: map[string]string{
				criconfig.AnnotationPodTerminationGracePeriod:    "7",
				"io.kubernetes.container.preStopHandler":         `{"exec": {"command": ["bye"]}}`,
				"io.kubernetes.container.terminationMessagePath": "/dev/termination-log",
			},
		},
	})
	if err == nil {
		_, err = l.engine.Client.StartContainer(l.t.Context(), &runtimeapi.StartContainerRequest{ContainerId: created.GetContainerId()})
	}
	if err != nil {
		l.t.Fatal(err)
	}
}

// TestOrphanIsDeleted checks that a pod that a kubelet has left is deleted with its own grace period and its hook, and
// that its records and files are removed.
func TestOrphanIsDeleted(t *testing.T) {
	for _, ends := range []bool{false, true} {
		l, ref := newLab(t, "i:1"), model.PodRef{Namespace: "ns", Name: "web", UID: "u-1"}
		l.runKubelets(ref)
		if ends {
			l.server.Exit("a", 0)
		}
		hooks := 0
		l.server.OnExec(func(_ string, command []string) *runtimeapi.ExecSyncResponse {
			hooks++
			return &runtimeapi.ExecSyncResponse{Stdout: []byte(strings.Join(command, " "))}
		})
		orphans := gc.Orphans{Collector: l.engine.Garbage}
		found, err := orphans.Find(t.Context())
		if err != nil || len(found) != 1 || found[0].Pod != ref {
			t.Fatalf("orphans: %+v %v", found, err)
		}
		if err = orphans.Adopt(t.Context(), found[0]); err != nil {
			t.Fatal(err)
		}
		outcome, err := l.engine.Pods.Delete(t.Context(), ref, executor.Options{ClusterPods: true})
		if err != nil || outcome.Err() != nil {
			t.Fatal(err, outcome)
		}
		stops := ""
		for _, s := range outcome.Plan.Steps {
			if s.GracePeriodSeconds != nil {
				stops += fmt.Sprint(s.Kind, " ", *s.GracePeriodSeconds)
			}
		}
		if ends && stops+fmt.Sprint(hooks) != "0" || !ends && (stops != "StopContainer 7" || hooks != 1) {
			t.Errorf("stops %q, %d hooks", stops, hooks)
		}
		pod := l.layout.Pod(ref.UID)
		for _, path := range []string{pod.Dir(), ok(pod.Logs(ref.Namespace, ref.Name).Dir())} {
			if _, err := os.Stat(path); !os.IsNotExist(err) {
				t.Errorf("%s: %v", path, err)
			}
		}
		if id := l.server.SandboxOf(string(ref.UID)); id != "" {
			t.Errorf("its sandbox %s is left", id)
		}
	}
}
