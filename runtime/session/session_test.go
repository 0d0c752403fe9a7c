package session

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/podspec/input"
	"github.com/podctl/podctl/podspec/load"
	"github.com/podctl/podctl/runtime/cgroup"
	"github.com/podctl/podctl/runtime/cri"
	"github.com/podctl/podctl/runtime/criconfig"
	"github.com/podctl/podctl/runtime/logfile"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/observe"
	"github.com/podctl/podctl/runtime/remote"
	"github.com/podctl/podctl/runtime/runtimetest"
	"github.com/podctl/podctl/runtime/state"
)

// lab is Sessions on a runtime in memory. The pod web can get a sandbox.
type lab struct {
	*Sessions
	t       *testing.T
	server  *runtimetest.Server
	pod     *podspec.Desired
	sandbox string
	logs    string
	layout  state.Layout
}

func newLab(t *testing.T) *lab {
	t.Helper()
	server, clock, endpoint := runtimetest.Start(t, "i:1")
	client, err := cri.Connect(cri.Endpoint{Address: endpoint, Origin: "test"}, "", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	layout := state.Layout{Root: t.TempDir(), LogRoot: t.TempDir()}
	w := observe.World{Client: client, Layout: layout, Cgroups: cgroup.Machine{}, Now: clock.Now}
	host := observe.NewHost(client, layout, observe.Sources{Machine: func() criconfig.Node { return criconfig.Node{Name: "node"} }})
	text := "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec:\n  containers: [{name: a, " +
		"image: 'i:1', ports: [{name: http, containerPort: 80}]}, {name: b, image: 'i:1'}]\n"
	m, err := load.Load(t.Context(), input.Reader{Stdin: strings.NewReader(text)}, "-")
	if err != nil || m.Err() != nil {
		t.Fatal(err, m.Err())
	}
	l := &lab{
		Sessions: New(client, observe.New(w, host, observe.NewDigests(layout))),
		t:        t,
		server:   server,
		pod:      m.Pods[0],
		logs:     t.TempDir(),
		layout:   layout,
	}
	return l
}

// labels returns the labels that a kubelet sets on the pod's objects.
func (l *lab) labels() map[string]string {
	ref := model.RefOf(l.pod.Pod)
	return map[string]string{
		criconfig.LabelPodName:      ref.Name,
		criconfig.LabelPodNamespace: ref.Namespace,
		criconfig.LabelPodUID:       string(ref.UID),
	}
}

// run creates a running container, and the sandbox of the pod if it has none. The log contains the attempt number.
func (l *lab) run(name string, attempt uint32) string {
	l.t.Helper()
	if l.sandbox == "" {
		meta := &runtimeapi.PodSandboxMetadata{Name: "web", Namespace: "default", Uid: string(l.pod.Pod.UID)}
		reply, err := l.client.RunPodSandbox(l.t.Context(), &runtimeapi.RunPodSandboxRequest{
			Config: &runtimeapi.PodSandboxConfig{Metadata: meta, Labels: l.labels(), LogDirectory: l.logs},
		})
		if err != nil {
			l.t.Fatal(err)
		}
		l.sandbox = reply.GetPodSandboxId()
	}
	log := name + string(rune('0'+attempt)) + ".log"
	labels := l.labels()
	labels[criconfig.LabelContainerName] = name
	config := &runtimeapi.ContainerConfig{
		Metadata:    &runtimeapi.ContainerMetadata{Name: name, Attempt: attempt},
		Image:       &runtimeapi.ImageSpec{Image: "i:1"},
		Labels:      labels,
		LogPath:     log,
		Annotations: map[string]string{criconfig.AnnotationRestartCount: string(rune('0' + attempt))},
	}
	request := &runtimeapi.CreateContainerRequest{PodSandboxId: l.sandbox, Config: config}
	reply, err := l.client.CreateContainer(l.t.Context(), request)
	if err == nil {
		_, err = l.client.StartContainer(l.t.Context(), &runtimeapi.StartContainerRequest{ContainerId: reply.GetContainerId()})
	}
	line := "2026-05-04T12:00:00.000000001Z stdout F of " + strings.TrimSuffix(log, ".log") + "\n"
	if err = errors.Join(err, os.WriteFile(filepath.Join(l.logs, log), []byte(line), 0o600)); err != nil {
		l.t.Fatal(err)
	}
	return reply.GetContainerId()
}

// TestRunningContainers checks that a session uses the newest running container. If there is none, the error names the
// command that shows the state.
func TestRunningContainers(t *testing.T) {
	l := newLab(t)
	if _, err := l.running(t.Context(), l.pod, "a"); err == nil || !strings.Contains(err.Error(), "podctl get --containers web") {
		t.Errorf("before it was created: %v", err)
	}
	l.run("b", 0)
	l.run("a", 0)
	l.server.Exit("a", 1)
	if _, err := l.running(t.Context(), l.pod, "a"); err == nil {
		t.Error("a container that has ended runs")
	}
	want := l.run("a", 1)
	if id, err := l.running(t.Context(), l.pod, "a"); id != want || err != nil {
		t.Errorf("%s, %v", id, err)
	}
	l.server.Fail(runtimetest.Fault{Method: "ListContainers", Times: 1, Err: errors.New("injected failure")})
	if _, err := l.running(t.Context(), l.pod, "a"); err == nil || !strings.HasPrefix(err.Error(), "finding container a: ") {
		t.Errorf("error %v", err)
	}
}

// TestLogsOfRuns checks that the newest run is shown, and with Previous the one before it. Without a name, all
// containers with a log are shown.
func TestLogsOfRuns(t *testing.T) {
	l := newLab(t)
	l.run("b", 0)
	l.run("a", 0)
	l.server.Exit("a", 1)
	l.run("a", 1)
	for name, c := range map[string]struct {
		opts LogOptions
		want string
		err  string
	}{
		"newest":         {LogOptions{Container: "a"}, "of a1\n", ""},
		"previous":       {LogOptions{Container: "a", Previous: true}, "of a0\n", ""},
		"no previous":    {LogOptions{Container: "b", Previous: true}, "", "container b of pod default/web has no previous run"},
		"all":            {LogOptions{Prefix: func(name string) string { return name + ": " }}, "a: of a1\nb: of b0\n", ""},
		"all, previous":  {LogOptions{Previous: true}, "of a0\n", ""},
		"an unknown one": {LogOptions{Container: "c"}, "", `pod default/web has no container "c"; it has [a b]`},
	} {
		var out bytes.Buffer
		err := l.Logs(t.Context(), l.pod, c.opts, &out, &out)
		if out.String() != c.want || (err == nil) != (c.err == "") || (err != nil && !strings.Contains(err.Error(), c.err)) {
			t.Errorf("%s: %q, %v", name, out.String(), err)
		}
	}
}

// TestReasonsForAMissingLog checks the error for a named container without a log.
func TestReasonsForAMissingLog(t *testing.T) {
	for name, c := range map[string]struct {
		memory model.Memory
		opts   LogOptions
		want   string
	}{
		"not started": {
			model.Memory{},
			LogOptions{Container: "a"},
			"container a of pod default/web has no log: it has not started: ContainerCreating",
		},
		"cannot start": {
			model.Memory{StartErrors: map[string]model.StartError{"a": {Reason: "ErrImagePull", Message: "no such image"}}},
			LogOptions{Container: "a"},
			"it has not started: ErrImagePull: no such image",
		},
		"not admitted": {
			model.Memory{Rejection: &model.Rejection{Reason: "OutOfcpu", Message: "too little"}},
			LogOptions{Container: "a"},
			"the pod did not run: OutOfcpu",
		},
		"its record is gone": {
			model.Memory{Completion: &model.Completion{
				Phase:      v1.PodFailed,
				Containers: map[string]model.ContainerEnd{"a": {Reason: "Error", ExitCode: 3}},
			}},
			LogOptions{Container: "a", Options: logfile.Options{Follow: true}},
			"it has ended (Error, exit code 3), and the runtime has removed its record",
		},
		"the container never ran": {
			model.Memory{Completion: &model.Completion{Phase: v1.PodFailed, Containers: map[string]model.ContainerEnd{"b": {ExitCode: 3}}}},
			LogOptions{Container: "a"},
			"the pod has ended as Failed before the container was started",
		},
		"all of them": {model.Memory{}, LogOptions{}, ""},
	} {
		l := newLab(t)
		l.pod.Pod.Spec.RestartPolicy = v1.RestartPolicyNever
		c.memory.Applied = l.pod
		if err := l.layout.Pod(l.pod.Pod.UID).Checkpoint().Write(&state.Checkpoint{Memory: c.memory}); err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		err := l.Logs(t.Context(), l.pod, c.opts, &out, &out)
		if out.Len() > 0 || (err == nil) != (c.want == "") || (err != nil && !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %q, %v", name, out.String(), err)
		}
	}
}

// TestFollowersShowEachRunOnce checks that runs that came between two checks are shown in their order. Runs before the
// first shown one are not.
func TestFollowersShowEachRunOnce(t *testing.T) {
	run := func(id string) *runtimeapi.Container { return &runtimeapi.Container{Id: id} }
	f := &logFollower{}
	f.pass([]*runtimeapi.Container{run("1"), run("2")})
	var shown []string
	for _, runs := range [][]string{{"1", "2"}, {"1", "2", "3", "4"}, {"2", "3", "4"}, {"3", "4"}} {
		var all []*runtimeapi.Container
		for _, id := range runs {
			all = append(all, run(id))
		}
		if c := f.after(all); c != nil {
			shown = append(shown, c.GetId())
		}
	}
	if !slices.Equal(shown, []string{"3", "4"}) {
		t.Errorf("shown %v", shown)
	}
	f.opts.Previous = true
	if c := f.after([]*runtimeapi.Container{run("5")}); c != nil {
		t.Error("a previous run is followed by another one")
	}
}

// TestFollowersEnd checks that a follower continues over restarts, until it is ended or no further run will come.
func TestFollowersEnd(t *testing.T) {
	l := newLab(t)
	l.pod.Pod.Spec.RestartPolicy = v1.RestartPolicyNever
	l.run("a", 0)
	l.run("b", 0)
	l.server.Exit("a", 0)
	l.server.Exit("b", 0)
	var out bytes.Buffer
	opts := LogOptions{Container: "a"}
	opts.Follow = true
	if err := l.Logs(t.Context(), l.pod, opts, &out, &out); err != nil || out.String() != "of a0\n" {
		t.Errorf("of a pod that has finished: %q, %v", out.String(), err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	l.run("a", 1)
	out.Reset()
	if err := l.Logs(ctx, l.pod, opts, ending{&out, cancel}, &out); err != nil || out.String() != "of a1\n" {
		t.Errorf("it was ended: %q, %v", out.String(), err)
	}
}

// ending ends a context after a write.
type ending struct {
	to  *bytes.Buffer
	end context.CancelFunc
}

func (e ending) Write(p []byte) (int, error) {
	defer e.end()
	return e.to.Write(p)
}

// TestContainerWithoutARecordDoesNotRun checks that a container without a record does not run.
func TestContainerWithoutARecordDoesNotRun(t *testing.T) {
	l := newLab(t)
	id := l.run("a", 0)
	if runs, err := l.stillRuns(t.Context(), id); !runs || err != nil {
		t.Errorf("it runs: %t, %v", runs, err)
	}
	l.server.Exit("a", 0)
	if runs, err := l.stillRuns(t.Context(), id); runs || err != nil {
		t.Errorf("it has ended: %t, %v", runs, err)
	}
	if runs, err := l.stillRuns(t.Context(), "another"); runs || err != nil {
		t.Errorf("it is gone: %t, %v", runs, err)
	}
}

// TestPortNumbers checks that names of ports are replaced with their numbers, and that a single port is used on both
// sides.
func TestPortNumbers(t *testing.T) {
	l := newLab(t)
	for given, want := range map[string]string{
		"8080:80":   "8080:80",
		"80":        "80:80",
		"http":      "80:80",
		"8080:http": "8080:80",
		":http":     ":80",
		"0":         "",
		"70000":     "",
		"8080:smtp": "",
		"":          "",
	} {
		got, err := portNumbers(l.pod.Pod, []string{given})
		if (err == nil) != (want != "") || (err == nil && got[0] != want) {
			t.Errorf("%q: %v, %v", given, got, err)
		}
	}
}

// TestForwardingNeedsASandbox checks that a pod without a ready sandbox does not run.
func TestForwardingNeedsASandbox(t *testing.T) {
	l := newLab(t)
	l.run("a", 0)
	ref := model.RefOf(l.pod.Pod)
	if id, err := l.readySandbox(t.Context(), ref); id != l.sandbox || err != nil {
		t.Errorf("%s, %v", id, err)
	}
	l.server.Reboot()
	if err := l.PortForward(t.Context(), l.pod, &remote.Forwarding{Ports: []string{"80"}}); err == nil ||
		err.Error() != "pod default/web does not run" {
		t.Errorf("error %v", err)
	}
}

// TestCommandsThatDoNotRun checks that the outer layers of the runtime's message are removed, and that a missing
// program is distinguished from other failures.
func TestCommandsThatDoNotRun(t *testing.T) {
	for output, c := range map[string]struct {
		want    string
		missing bool
	}{
		"error executing command in container: failed to exec: unable to start container process: " +
			`exec: "x": executable file not found in $PATH`: {
			`exec: "x": executable file not found in $PATH`,
			true,
		},
		"exec /x: no such file or directory": {"exec /x: no such file or directory", true},
		"permission denied":                  {"permission denied", false},
	} {
		e := &ExecError{Pod: model.PodRef{Namespace: "ns", Name: "web"}, Container: "a", Command: "x", Err: errors.New(output)}
		if e.Error() != "pod ns/web: container a: running x: "+c.want || e.NoCommand() != c.missing {
			t.Errorf("%q: %v, missing %t", output, e, e.NoCommand())
		}
	}
	lost := &LostPodError{Pod: model.PodRef{Namespace: "ns", Name: "web"}, Err: errors.New("it was stopped")}
	if lost.Error() != "lost the connection to pod ns/web: it was stopped" || !errors.Is(lost, lost.Err) {
		t.Error(lost)
	}
}

// TestDebugContainersAreFound checks that commands for one container find those that were added to the running pod. The
// manifest does not change.
func TestDebugContainersAreFound(t *testing.T) {
	l := newLab(t)
	l.run("a", 0)
	l.run("debugger", 0)
	if with, err := l.WithDebug(t.Context(), l.pod); err != nil || with != l.pod {
		t.Errorf("without a definition: %v", err)
	}
	l.server.Annotate("debugger", criconfig.AnnotationDebug, `{"name":"debugger","image":"i:1"}`)
	with, err := l.WithDebug(t.Context(), l.pod)
	if err != nil {
		t.Fatal(err)
	}
	if _, found := podspec.FindContainer(with.Pod, "debugger"); !found || len(l.pod.Pod.Spec.EphemeralContainers) > 0 {
		t.Errorf("found %t", found)
	}
}
