package agent

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/executor"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/runtimetest"
)

// behindProxy connects the agent to the runtime through a proxy that disturbs its calls.
func (l *lab) behindProxy() *runtimetest.Proxy {
	l.t.Helper()
	front := filepath.Join(filepath.Dir(l.socket), "front.sock")
	proxy, err := runtimetest.StartProxy(l.t.Context(), front, l.socket)
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() { _ = proxy.Close() })
	l.socket = front
	return proxy
}

// inLoop evaluates a function in the loop of an agent.
func inLoop[T any](l *lab, a *Agent, see func() T) T {
	l.t.Helper()
	ctx, cancel := context.WithTimeout(l.t.Context(), patient)
	defer cancel()
	seen, err := call(ctx, a.inbox, see)
	if err != nil {
		l.t.Fatal("the loop of the agent is blocked")
	}
	return seen
}

// edited returns a pod of the source with another value of a variable.
func (l *lab) edited(name, image, value string) *podspec.Desired {
	l.t.Helper()
	d := l.manifest(name, image)
	again := podspec.New(d.Pod.DeepCopy(), d.Source, "")
	again.Pod.Spec.Containers[0].Env = []v1.EnvVar{{Name: "VALUE", Value: value}}
	again.Owner = d.Owner
	return again
}

// TestHungRuntimeDoesNotBlockTheLoop checks that the agent answers and handles updates while the runtime does not
// answer a query of its configuration, also when that must be repeated.
func TestHungRuntimeDoesNotBlockTheLoop(t *testing.T) {
	l := newLab(t)
	proxy := l.behindProxy()
	proxy.Disturb(runtimetest.Disturbance{Method: "RuntimeConfig", Nth: 1, Hang: true})
	c := newChannel()
	a, stop := l.run(c)
	c.updates <- []*podspec.Desired{l.manifest("one", "i:1")}
	l.until("the runtime is asked", func() bool { return proxy.Count("RuntimeConfig") == 1 })
	a.inbox <- a.world.Renew
	if n := inLoop(l, a, func() int { return len(a.reconciler.kept) }); n != 1 {
		t.Errorf("%d kept pods", n)
	}
	proxy.Break()
	stop()
}

// TestEditDuringAPull checks that the next pass pulls at once after a pull was cut short, because the canceled pull
// does not count as a failure of the image.
func TestEditDuringAPull(t *testing.T) {
	l := newLab(t)
	proxy := l.behindProxy()
	proxy.Disturb(runtimetest.Disturbance{Method: "PullImage", Nth: 1, Delay: time.Hour})
	c := newChannel()
	_, stop := l.run(c)
	c.updates <- []*podspec.Desired{l.manifest("one", "slow:1")}
	l.until("the pull hangs", func() bool { return proxy.Count("PullImage") == 1 })
	proxy.Disturb(runtimetest.Disturbance{Method: "PullImage", Nth: 1, Delay: time.Hour})
	c.updates <- []*podspec.Desired{l.edited("one", "slow:1", "2")}
	l.until("the image is pulled again", func() bool { return proxy.Count("PullImage") == 2 })
	checkpoint, err := l.layout.Pod(podspec.UID("default", "one")).Checkpoint().Read()
	if err != nil || len(checkpoint.StartErrors) > 0 {
		t.Errorf("%v, failures %+v", err, checkpoint.StartErrors)
	}
	stop()
}

// TestRemovedProbes checks that removed probes no longer run, although their container keeps running.
func TestRemovedProbes(t *testing.T) {
	l := newLab(t)
	c := newChannel()
	a, stop := l.run(c)
	c.updates <- []*podspec.Desired{l.manifest("one", "i:1")}
	requested := func() int { return inLoop(l, a, func() int { return len(a.probes.pods) }) }
	l.until("the probe is asked", func() bool { return requested() == 1 })
	id := l.running()["one"]
	d := l.manifest("one", "i:1")
	d.Pod.Spec.Containers[0].ReadinessProbe = nil
	c.updates <- []*podspec.Desired{d}
	l.until("no probe is asked", func() bool { return requested() == 0 })
	if now := l.running()["one"]; now != id {
		t.Errorf("container %s runs, and %s did", now, id)
	}
	stop()
}

// TestDeletedPodsUseNoMemory checks that pods that users have deleted use no memory, because an agent runs for a long
// time.
func TestDeletedPodsUseNoMemory(t *testing.T) {
	l := newLab(t)
	c := newChannel()
	a, stop := l.run(c)
	for i := range 5 {
		d := l.manifest(fmt.Sprintf("one-%d", i), "i:1")
		d.Owner = ""
		if outcome, err := l.engine.Pods.Apply(t.Context(), d, executor.Options{}); err != nil || outcome.Err() != nil {
			t.Fatal(err, outcome)
		}
		l.until("the agent knows it", func() bool { return inLoop(l, a, func() int { return len(a.last) }) == 1 })
		if _, err := l.engine.Pods.Delete(t.Context(), model.RefOf(d.Pod), executor.Options{}); err != nil {
			t.Fatal(err)
		}
		l.until("nothing is known of it", func() bool {
			return inLoop(l, a, func() int { return len(a.last) + len(a.admitter.changesAt) + len(a.probes.pods) }) == 0
		})
	}
	stop()
}

// TestFailedPassAppliesNothing checks that the agent shows and stops the recorded version of a pod, and not an edit
// that failed.
func TestFailedPassAppliesNothing(t *testing.T) {
	l := newLab(t)
	proxy := l.behindProxy()
	c := newChannel()
	a, stop := l.run(c)
	c.updates <- []*podspec.Desired{l.manifest("one", "i:1")}
	l.until("it runs and rests", func() bool {
		return l.running()["one"] != "" && inLoop(l, a, func() bool { return len(a.running) == 0 })
	})
	for range 20 {
		proxy.Disturb(runtimetest.Disturbance{Method: "ListPodSandbox", Nth: 1, Fail: codes.Internal, Text: "injected failure"})
	}
	edit := l.manifest("one", "i:2")
	c.updates <- []*podspec.Desired{edit}
	l.until("its pass fails", func() bool {
		return inLoop(l, a, func() bool { return strings.Contains(a.last[edit.Pod.UID].failure, "injected failure") })
	})
	if image := inLoop(l, a, func() string { return a.reconciler.asApplied(edit).Pod.Spec.Containers[0].Image }); image != "i:1" {
		t.Errorf("%s is recorded as applied", image)
	}
	proxy.Calm()
	stop()
}

// TestTakeover checks that the takeover of a pod applied by hand is recorded once as an event of the pod, and in the
// status.
func TestTakeover(t *testing.T) {
	l := newLab(t)
	l.connect()
	hand := l.manifest("one", "i:1")
	hand.Owner = ""
	if _, err := l.engine.Pods.Apply(t.Context(), hand, executor.Options{}); err != nil {
		t.Fatal(err)
	}
	c := newChannel()
	a, stop := l.run(c)
	file := l.manifest("one", "i:1")
	file.Source, file.Owner = "/pods/one.yaml", c.Name()
	c.updates <- []*podspec.Desired{file}
	reported := func() (count int) {
		history, err := l.layout.Pod(podspec.UID("default", "one")).History().Read()
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range history.Events {
			if e.Reason == "TakenOver" && strings.Contains(e.Message, "/pods/one.yaml takes over pod default/one") {
				count += e.Count
			}
		}
		return count
	}
	l.until("it is an event", func() bool { return reported() == 1 })
	status, err := a.Status(t.Context())
	if err != nil || len(status.Sources) != 1 || len(status.Sources[0].Takeovers) != 1 {
		t.Errorf("%+v, %v", status, err)
	}
	stop()
	if reported() != 1 {
		t.Errorf("%d events", reported())
	}
}

// TestTwoManifestsOfAPod checks that the manifest without effect is recorded once as an event of the pod.
func TestTwoManifestsOfAPod(t *testing.T) {
	l := newLab(t)
	c := newChannel()
	_, stop := l.run(c)
	first, second := l.manifest("one", "i:1"), l.manifest("one", "i:2")
	first.Source, second.Source = "/first.yaml", "/second.yaml"
	reported := func() (count int) {
		history, err := l.layout.Pod(podspec.UID("default", "one")).History().Read()
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range history.Events {
			if e.Reason == "DuplicateManifest" &&
				strings.Contains(e.Message, "/second.yaml: Pod default/one is given twice, first in /first.yaml") {
				count += e.Count
			}
		}
		return count
	}
	c.updates <- []*podspec.Desired{first}
	l.until("it runs", func() bool { return l.running()["one"] != "" })
	id := l.running()["one"]
	c.updates <- []*podspec.Desired{first, second}
	l.until("the other manifest is reported", func() bool { return reported() > 0 })
	c.updates <- []*podspec.Desired{first, second, l.manifest("two", "i:1")}
	l.until("another pod runs", func() bool { return l.running()["two"] != "" })
	if now := l.running()["one"]; reported() != 1 || now != id {
		t.Errorf("reported %d times, containers %s and %s", reported(), id, now)
	}
	stop()
}

// withCredentials returns a pod of the source that pulls its image with a password.
func (l *lab) withCredentials(name, image, password string) *podspec.Desired {
	l.t.Helper()
	d := l.manifest(name, image)
	d.Pod.Spec.ImagePullSecrets = []v1.LocalObjectReference{{Name: "registry"}}
	secret := &v1.Secret{Type: v1.SecretTypeDockerConfigJson}
	secret.Namespace, secret.Name = "default", "registry"
	secret.Data = map[string][]byte{
		v1.DockerConfigJsonKey: fmt.Appendf(nil, `{"auths": {"docker.io": {"username": "me", "password": %q}}}`,
			password),
	}
	d.Objects.Put(&podspec.Object{Secret: secret})
	return d
}

// TestFixedCredentials checks that a failed pull is retried at once with other credentials, and its back-off is
// reset.
func TestFixedCredentials(t *testing.T) {
	l := newLab(t)
	proxy := l.behindProxy()
	for range 2 {
		proxy.Disturb(runtimetest.Disturbance{Method: "PullImage", Nth: 1, Fail: codes.Internal, Text: "injected failure"})
	}
	c := newChannel()
	_, stop := l.run(c)
	failure := func() model.StartError {
		checkpoint, err := l.layout.Pod(podspec.UID("default", "one")).Checkpoint().Read()
		if err != nil {
			t.Fatal(err)
		}
		return checkpoint.StartErrors["a"]
	}
	c.updates <- []*podspec.Desired{l.withCredentials("one", "slow:1", "wrong")}
	l.until("the pull fails", func() bool { return failure().Pause > 0 })
	first := failure()
	c.updates <- []*podspec.Desired{l.withCredentials("one", "slow:1", "right")}
	l.until("it is tried again", func() bool { return !failure().At.Equal(first.At) })
	if again := failure(); again.Pause != first.Pause || again.Credentials == first.Credentials ||
		strings.Contains(again.Credentials, "right") {
		t.Errorf("failures %+v and %+v", first, again)
	}
	stop()
}

// readiness returns the recorded readiness of a container of a pod.
func (l *lab) readiness(name, id string) model.ProbeResult {
	l.t.Helper()
	checkpoint, err := l.layout.Pod(podspec.UID("default", name)).Checkpoint().Read()
	if err != nil {
		l.t.Fatal(err)
	}
	return checkpoint.Probes[id][model.Readiness].Result
}

// setProbes makes all probes succeed or fail.
func (l *lab) setProbes(code int32) {
	l.server.OnExec(func(string, []string) *runtimeapi.ExecSyncResponse {
		return &runtimeapi.ExecSyncResponse{ExitCode: code}
	})
}

// ready runs an agent with a ready pod, and returns its container.
func (l *lab) ready(c *channel) (id string, stop func()) {
	l.t.Helper()
	_, stop = l.run(c)
	d := l.manifest("one", "i:1")
	d.Pod.Spec.Containers[0].ReadinessProbe.FailureThreshold = 1
	c.updates <- []*podspec.Desired{d}
	l.until("it is ready", func() bool {
		id = l.running()["one"]
		return id != "" && l.readiness("one", id) == model.ProbeSuccess
	})
	return id, stop
}

// TestVerdictDuringAPull checks that a probe result is recorded while a pulling pass has the pod's lock.
func TestVerdictDuringAPull(t *testing.T) {
	l := newLab(t)
	proxy := l.behindProxy()
	c := newChannel()
	id, stop := l.ready(c)
	proxy.Disturb(runtimetest.Disturbance{Method: "PullImage", Nth: 1, Delay: time.Hour})
	d := l.manifest("one", "i:1")
	d.Pod.Spec.Containers = append(d.Pod.Spec.Containers, v1.Container{Name: "b", Image: "slow:1"})
	d.Pod.Spec.Containers[0].ReadinessProbe.FailureThreshold = 1
	c.updates <- []*podspec.Desired{d}
	l.until("the pull hangs", func() bool { return proxy.Count("PullImage") == 1 })
	l.setProbes(1)
	l.until("it is not ready", func() bool { return l.readiness("one", id) == model.ProbeFailure })
	if !l.server.Runs(id) {
		t.Error("the container was stopped")
	}
	stop()
}

// TestReadinessDuringADeletion checks that readiness is recorded until the pod is gone.
func TestReadinessDuringADeletion(t *testing.T) {
	l := newLab(t)
	proxy := l.behindProxy()
	c := newChannel()
	id, stop := l.ready(c)
	proxy.Disturb(runtimetest.Disturbance{Method: "StopContainer", Nth: 1, Delay: time.Hour})
	c.updates <- nil
	l.until("StopContainer is called", func() bool { return proxy.Count("StopContainer") == 1 })
	l.setProbes(1)
	l.until("it is not ready", func() bool { return l.readiness("one", id) == model.ProbeFailure })
	proxy.Break()
	l.until("it is gone", func() bool { return l.running()["one"] == "" })
	stop()
}

// TestPodsWithoutContainers checks that the agent notices pods without containers that users apply and delete, although
// the runtime has no record of them.
func TestPodsWithoutContainers(t *testing.T) {
	l := newLab(t)
	proxy := l.behindProxy()
	for range 50 {
		proxy.Disturb(runtimetest.Disturbance{Method: "PullImage", Nth: 1, Fail: codes.Internal, Text: "injected failure"})
	}
	c := newChannel()
	a, stop := l.run(c)
	l.until("the runtime answers", func() bool { return inLoop(l, a, func() bool { return a.runtime.up }) })
	d := l.manifest("one", "away:1")
	d.Owner = ""
	if outcome, err := l.engine.Pods.Apply(t.Context(), d, executor.Options{}); err != nil || outcome.Err() == nil {
		t.Fatal(err)
	}
	keeps := func() bool { return inLoop(l, a, func() bool { return a.reconciler.kept[d.Pod.UID] != nil }) }
	l.until("the agent keeps it", keeps)
	if _, err := l.engine.Pods.Delete(t.Context(), model.RefOf(d.Pod), executor.Options{}); err != nil {
		t.Fatal(err)
	}
	l.until("the agent does not keep it", func() bool { return !keeps() })
	stop()
}
