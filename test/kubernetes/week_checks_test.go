package kubernetes

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// weekState is what the API server, podctl and the runtime know at one time.
type weekState struct {
	pods       []v1.Pod
	local      []object
	sandboxes  []*runtimeapi.PodSandbox
	containers []*runtimeapi.Container
	// names maps the uids of all pods of the node to their names; ended are the pods that have ended.
	names map[string]string
	ended map[string]bool
	// problems are the differences.
	problems []string
}

func (s *weekState) problem(format string, args ...any) {
	s.problems = append(s.problems, fmt.Sprintf(format, args...))
}

// settle waits until the API server, podctl and the runtime agree, and nothing of deleted pods is left.
func (w *week) settle(t *testing.T) {
	t.Helper()
	w.note("settle")
	began, last := time.Now(), ""
	for time.Since(began) < patience+2*time.Minute { // a restart may be delayed
		w.keepScheduler(t)
		s := w.look(t)
		if len(s.problems) == 0 {
			w.note("settled: after %v, %d pods", time.Since(began).Round(time.Second), len(s.pods))
			return
		}
		if now := strings.Join(s.problems, "\n"); now != last {
			last = now
			w.note("problems: %s", now)
		}
		time.Sleep(2 * time.Second)
	}
	w.note("not settled: %s", last)
	t.Errorf("after %v:\n%s", time.Since(began), last)
}

// look compares all states.
func (w *week) look(t *testing.T) *weekState {
	t.Helper()
	s := &weekState{names: map[string]string{}, ended: map[string]bool{}}
	var err error
	ctx := context.WithoutCancel(t.Context())
	if s.pods, err = w.api.list(); err != nil {
		s.problem("list: %v", err)
		return s
	}
	sandboxes, err := w.node.cri.ListPodSandbox(ctx, &runtimeapi.ListPodSandboxRequest{})
	if err != nil {
		s.problem("sandboxes: %v", err)
		return s
	}
	containers, err := w.node.cri.ListContainers(ctx, &runtimeapi.ListContainersRequest{})
	if err != nil {
		s.problem("containers: %v", err)
		return s
	}
	s.sandboxes, s.containers = sandboxes.GetItems(), containers.GetContainers()
	s.local = w.node.pods(t, "--runtime-endpoint", "unix://"+containerdSocket)
	w.compareNames(s)
	s.compareRuntime()
	w.compareKinds(t, s)
	s.findLeft()
	return s
}

// compareNames checks that podctl has the pods of the API server and of its own sources, and no others.
func (w *week) compareNames(s *weekState) {
	mirrors := map[string]bool{}
	for i := range s.pods {
		p := &s.pods[i]
		if p.DeletionTimestamp != nil {
			s.problem("%s is being deleted", p.Name)
		}
		if p.Annotations[v1.MirrorPodAnnotationKey] != "" {
			mirrors[p.Name] = true
			continue
		}
		s.names[string(p.UID)] = p.Namespace + "/" + p.Name
		s.ended[string(p.UID)] = p.Status.Phase == v1.PodSucceeded || p.Status.Phase == v1.PodFailed
	}
	shown := map[string]bool{}
	for _, o := range s.local {
		uid, name := o.at("metadata", "uid"), o.at("metadata", "name")
		if s.names[uid] != "" {
			continue
		}
		if w.local[name] == nil {
			s.problem("podctl has pod %s with uid %s", name, uid)
			continue
		}
		s.names[uid], shown[name] = "week/"+name, true
		if phase := o.at("status", "phase"); phase != "Running" || o.condition("Ready") != "True" {
			s.problem("%s is %s, ready: %s", name, phase, o.condition("Ready"))
		}
		if !mirrors[name+"-"+nodeName] {
			s.problem("%s has no mirror pod", name)
		}
		delete(mirrors, name+"-"+nodeName)
	}
	for name := range w.local {
		if !shown[name] {
			s.problem("podctl does not have pod %s", name)
		}
	}
	for name := range mirrors {
		s.problem("mirror pod %s has no pod", name)
	}
}

// compareRuntime checks that each pod has one sandbox, and that the statuses show the containers of the runtime.
func (s *weekState) compareRuntime() {
	live, runs := map[string]int{}, map[string]string{}
	for _, b := range s.sandboxes {
		uid := b.GetMetadata().GetUid()
		switch {
		case s.names[uid] == "":
			s.problem("sandbox %.12s of pod %s %s", b.GetId(), b.GetMetadata().GetName(), uid)
		case b.GetState() == runtimeapi.PodSandboxState_SANDBOX_READY:
			live[uid]++
			if live[uid] > 1 || s.ended[uid] {
				s.problem("%s has %d sandboxes, ended: %v", s.names[uid], live[uid], s.ended[uid])
			}
		}
	}
	for _, c := range s.containers {
		if c.GetState() == runtimeapi.ContainerState_CONTAINER_RUNNING {
			pod := c.GetLabels()["io.kubernetes.pod.uid"]
			runs[c.GetId()] = fmt.Sprintf("%s of %s", c.GetMetadata().GetName(), cmp.Or(s.names[pod], pod))
		}
	}
	for i := range s.pods {
		p := &s.pods[i]
		statuses := slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses, p.Status.EphemeralContainerStatuses)
		for _, c := range statuses {
			id := strings.TrimPrefix(c.ContainerID, "containerd://")
			if c.State.Running == nil {
				continue
			}
			if runs[id] == "" {
				s.problem("container %s of %s %.12s does not run", c.Name, p.Name, id)
			}
			delete(runs, id)
		}
	}
	for id, what := range runs {
		s.problem("container %s %.12s runs", what, id)
	}
}

// compareKinds checks that no pod of the test is lost, that pods have the expected state, and that restarts have causes.
func (w *week) compareKinds(t *testing.T, s *weekState) {
	t.Helper()
	found := map[string]bool{}
	for i := range s.pods {
		p := &s.pods[i]
		if p.Labels["week"] == "" || p.Annotations[v1.MirrorPodAnnotationKey] != "" {
			if p.Namespace == "week" {
				s.compareMirror(w, p)
			}
			continue
		}
		found[p.Name] = true
		want := w.pods[p.Name]
		if want == nil {
			s.problem("the API server has pod %s", p.Name)
			continue
		}
		s.compareKind(w, p, want)
		if want.name == "steady" {
			w.compareValue(s, p)
		}
	}
	for name := range w.pods {
		if !found[name] {
			s.problem("pod %s is lost", name)
		}
	}
}

// compareMirror checks the restarts of a mirror pod.
func (s *weekState) compareMirror(w *week, p *v1.Pod) {
	if want := w.local[strings.TrimSuffix(p.Name, "-"+nodeName)]; want != nil {
		s.compareRestarts(w, p, want)
	}
}

func (s *weekState) compareKind(w *week, p *v1.Pod, want *weekPod) {
	ended := want.restarts > 0 || w.interruptions(p, "app") > 0
	killed := ended && (want.spec["restartPolicy"] != nil || want.name == "late" || want.name == "large")
	if !killed && (want.phase != p.Status.Phase || want.reason != "" && want.reason != p.Status.Reason) {
		s.problem("%s is %s %s, want %s %s", p.Name, p.Status.Phase, p.Status.Reason, want.phase, want.reason)
	}
	for _, c := range p.Status.Conditions {
		if want.ready && c.Type == v1.PodReady && c.Status != v1.ConditionTrue {
			s.problem("%s is not ready: %s", p.Name, c.Reason)
		}
	}
	if p.Status.ObservedGeneration != p.Generation && p.Status.Phase == v1.PodRunning {
		s.problem("%s: generation %d, observed %d", p.Name, p.Generation, p.Status.ObservedGeneration)
	}
	if !want.crashes {
		s.compareRestarts(w, p, want)
	}
}

// interruptions returns how often the start of a container was interrupted: by a kill of the agent, as statuses show, or
// of the runtime, as the log of the agent shows. While the API server is away, it does not get each status.
func (w *week) interruptions(p *v1.Pod, container string) int32 {
	n := w.api.interruptions(p, container)
	text, _ := os.ReadFile(filepath.Join(w.logs, "agent.log"))
	pod := " pod=week/" + strings.TrimSuffix(p.Name, "-"+nodeName) + " "
	for line := range strings.Lines(string(text)) {
		if strings.Contains(line, pod) && strings.Contains(line, ` step="start `+container+`" `) &&
			(strings.Contains(line, ` msg="step failed" `) || strings.Contains(line, ` because="exited 255 `)) {
			n++
		}
	}
	return n
}

func (s *weekState) compareRestarts(w *week, p *v1.Pod, want *weekPod) {
	for _, c := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
		allowed := w.interruptions(p, c.Name)
		if c.Name == "app" || want.restored {
			allowed += want.restarts
		}
		if p.CreationTimestamp.Time.Before(want.applied.Truncate(time.Second)) {
			allowed += want.earlier
		}
		if c.RestartCount > allowed {
			s.problem("%s: %d restarts of %s, want at most %d", p.Name, c.RestartCount, c.Name, allowed)
		}
		if c.Name == "app" && c.State.Running != nil && p.Spec.Containers[0].Image != c.Image {
			s.problem("%s runs image %s, want %s", p.Name, c.Image, p.Spec.Containers[0].Image)
		}
	}
}

// compareValue checks the objects in the volumes of a pod.
func (w *week) compareValue(s *weekState, p *v1.Pod) {
	for _, at := range []string{"configmap/settings", "secret/secret", "projected/token"} {
		path := filepath.Join(stateDir, "pods", string(p.UID), "volumes", "kubernetes.io~"+at, "text")
		if text, err := os.ReadFile(path); err != nil || string(text) != fmt.Sprint(w.value) {
			s.problem("%s: %s is %q (%v), want %d", p.Name, at, text, err, w.value)
		}
	}
}

var uidPattern = regexp.MustCompile(`[0-9a-f]{8}[-_][0-9a-f]{4}[-_][0-9a-f]{4}[-_][0-9a-f]{4}[-_][0-9a-f]{12}`)

// findLeft finds files, mounts, cgroups and networks of pods that are gone.
func (s *weekState) findLeft() {
	for _, pattern := range []string{
		stateDir + "/pods/*", stateDir + "/locks/*", podLogs + "/*", stateDir + "/cluster/objects/*/*/*:*",
	} {
		paths, _ := filepath.Glob(pattern)
		for _, path := range paths {
			if uid := uidPattern.FindString(path); uid != "" && s.names[uid] == "" {
				s.problem("left: %s", path)
			}
		}
	}
	mounts, _ := os.ReadFile("/proc/self/mountinfo")
	networks := 0
	for line := range strings.Lines(string(mounts)) {
		fields := strings.Fields(line)
		if strings.HasPrefix(fields[4], "/run/netns/") {
			networks++
		}
		uid := uidPattern.FindString(fields[4])
		if strings.Contains(fields[4], "/pods/") && uid != "" && (s.names[uid] == "" || s.ended[uid]) {
			s.problem("left: mount %s", fields[4])
		}
	}
	s.compareNetworks(networks)
	_ = filepath.WalkDir(cgroupsDir, func(path string, entry os.DirEntry, err error) error {
		if err != nil || !entry.IsDir() || !strings.Contains(path, "pod") {
			return nil //nolint:nilerr // cgroups go at any time
		}
		uid := strings.ReplaceAll(uidPattern.FindString(path), "_", "-")
		if uid != "" && (s.names[uid] == "" || s.ended[uid]) {
			s.problem("left: cgroup %s", path)
		}
		return nil
	})
}

// compareNetworks checks that only sandboxes have networks and addresses.
func (s *weekState) compareNetworks(mounted int) {
	sandboxes := 0
	for _, b := range s.sandboxes {
		if b.GetState() == runtimeapi.PodSandboxState_SANDBOX_READY && !s.onHost(b.GetMetadata().GetUid()) {
			sandboxes++
		}
	}
	addresses, _ := filepath.Glob("/var/lib/cni/networks/pods/10.*")
	// Each mount appears once more below the first mount of its directory.
	if len(addresses) != sandboxes || mounted != sandboxes && mounted != 2*sandboxes {
		s.problem("%d sandboxes with networks, %d networks, %d addresses", sandboxes, mounted, len(addresses))
	}
}

// onHost reports whether a pod uses the network of the node.
func (s *weekState) onHost(uid string) bool {
	return slices.ContainsFunc(s.pods, func(p v1.Pod) bool { return string(p.UID) == uid && p.Spec.HostNetwork })
}
