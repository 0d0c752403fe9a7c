package executor

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/podctl/podctl/runtime/cgroup"
	"github.com/podctl/podctl/runtime/criconfig"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/plan"
	"github.com/podctl/podctl/runtime/runtimetest"
	"github.com/podctl/podctl/runtime/state"
)

// TestNamesInUseAreStateChanges checks a runtime with a sandbox or container that was not observed. The pass ends
// without a failure, and the next plan uses another attempt.
func TestNamesInUseAreStateChanges(t *testing.T) {
	for kind, want := range map[plan.Kind]map[string]uint32{plan.RunSandbox: {"": 0}, plan.StartContainer: {"a": 0}} {
		l := newLab(t, "i:1")
		p := l.plan(model.PodRef{}, onePod())
		method := map[plan.Kind]string{plan.RunSandbox: "RunPodSandbox", plan.StartContainer: "CreateContainer"}[kind]
		l.server.Fail(runtimetest.Fault{Method: method, Times: 1, Err: status.Error(codes.Unknown, `name "x" is reserved for "y"`)})
		outcome, err := p.run(Options{})
		changed := (*StateChangedError)(nil)
		if !errors.As(err, &changed) || len(outcome.Failed) > 0 {
			t.Errorf("%s: %v, failed %v", kind, err, outcome.Failed)
			continue
		}
		reserved := map[string]uint32{}
		changed.Learn(reserved)
		if !maps.Equal(reserved, want) {
			t.Errorf("%s: learned %v, want %v", kind, reserved, want)
		}
		p.in.Observed.Reserved = reserved
		if s := (&planned{lab: l, in: p.in, plan: plan.Make(p.in)}).step(kind, ""); s.Attempt != 1 {
			t.Errorf("%s: the next attempt is %d", kind, s.Attempt)
		}
	}
}

// TestSandboxesSupplyAddresses checks that the steps after a sandbox know its ID, its addresses and its message.
func TestSandboxesSupplyAddresses(t *testing.T) {
	l := newLab(t, "i:1")
	p := l.plan(model.PodRef{}, onePod())
	x := p.execution(Options{})
	if err := x.checkpoint.begin(); err != nil {
		t.Fatal(err)
	}
	detail, err := x.prepare.runSandbox(t.Context(), p.step(plan.RunSandbox, ""))
	if err != nil {
		t.Fatal(err)
	}
	made := x.prepare.outputs.sandbox()
	if detail == "" || made.IPs[0] != detail || made.ID == "" || made.config.GetMetadata().GetName() != "web" {
		t.Errorf("reported %q, stored %+v", detail, made)
	}
	if _, begun := x.checkpoint.record.InFlight[state.ThePod]; begun {
		t.Error("the sandbox is still recorded as in flight")
	}
}

// TestSandboxFailures checks that any failure is a CreatePodSandboxError, also if only the status call after the
// creation fails.
func TestSandboxFailures(t *testing.T) {
	for _, method := range []string{"RunPodSandbox", "PodSandboxStatus"} {
		l := newLab(t, "i:1")
		p := l.plan(model.PodRef{}, onePod())
		l.server.Fail(runtimetest.Fault{Method: method, Times: 1, Err: errors.New("injected failure")})
		outcome, err := p.run(Options{})
		if err != nil || len(outcome.Failed) != 1 || outcome.Failed[0].Reason != "CreatePodSandboxError" ||
			len(l.server.Created().Containers) > 0 {
			t.Errorf("%s: %v, %v", method, err, outcome.Failed)
		}
	}
}

// TestFailedPulls checks that the kubelet's reason is reported and recorded, and that the start after a pull knows
// the image.
func TestFailedPulls(t *testing.T) {
	l := newLab(t)
	text := pod("  containers: [{name: a, image: 'absent.local/i:1'}, {name: b, image: 'i:2'}]\n")
	outcome, err := l.plan(model.PodRef{}, text).run(Options{})
	if err != nil || len(outcome.Failed) != 1 || outcome.Failed[0].Reason != "ErrImagePull" || outcome.Failed[0].Step.Container != "a" {
		t.Fatal(err, outcome.Failed)
	}
	j := l.checkpoint(outcome.Plan.Pod)
	if e := j.StartErrors["a"]; len(j.StartErrors) != 1 || e.Reason != "ErrImagePull" || e.Message == "" {
		t.Errorf("recorded: %+v", j.StartErrors)
	}
	if made := l.server.Created().Containers; len(made) != 1 || made[0].GetImage().GetImage() != "sha256:i:2" {
		t.Errorf("created %v", made)
	}
	if len(outcome.Skipped) == 0 {
		t.Error("a container without its image was started")
	}
}

// TestVanishedImages checks that a pulled image that is not present is an ImageInspectError.
func TestVanishedImages(t *testing.T) {
	l := newLab(t)
	p := l.plan(model.PodRef{}, onePod())
	l.server.Fail(runtimetest.Fault{Method: "ImageStatus", Times: 9, Err: errors.New("injected failure")})
	_, err := p.execution(Options{}).prepare.pullImage(t.Context(), p.step(plan.PullImage, ""))
	if got := model.ReasonOf(err, ""); got != "ImageInspectError" {
		t.Errorf("%s: %v", got, err)
	}
}

// TestPulledImagesAreRecorded checks that images are recorded, except those that were present before and may belong to
// another tool. A failure to record does not fail the pull.
func TestPulledImagesAreRecorded(t *testing.T) {
	always := strings.Replace(onePod(), "image: 'i:1'", "image: 'i:1', imagePullPolicy: Always", 1)
	for name, c := range map[string]struct {
		present []string
		blocked bool
		want    bool
	}{
		"new": {nil, false, true}, "there before": {[]string{"i:1"}, false, false}, "no room": {nil, true, false},
	} {
		l := newLab(t, c.present...)
		p := l.plan(model.PodRef{}, always)
		if c.blocked {
			if err := os.WriteFile(filepath.Join(l.layout.Root, "pulled"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := p.execution(Options{}).prepare.pullImage(t.Context(), p.step(plan.PullImage, "")); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if names, err := l.layout.PulledImages().List(); names[state.PulledName("sha256:i:1")] != c.want || (err != nil) != c.blocked {
			t.Errorf("%s: recorded images %v %v", name, names, err)
		}
	}
}

// TestCgroupsOfPods checks that an incomplete cgroup is marked until it has its limits. A machine without cgroups runs
// pods anyway, with a warning.
func TestCgroupsOfPods(t *testing.T) {
	l := newLab(t, "i:1")
	p := l.plan(model.PodRef{}, onePod())
	x, mark := p.execution(Options{}), l.layout.Pod(p.in.Pod.UID).CgroupMark()
	l.cgroups.Fail(errors.New("injected failure"))
	if err := x.prepare.applyCgroup(); model.ReasonOf(err, "") != "FailedCreatePodContainer" || !mark.IsSet() {
		t.Errorf("%v, marked %t", err, mark.IsSet())
	}
	l.cgroups.Fail(nil)
	if err := x.prepare.applyCgroup(); err != nil || mark.IsSet() || !l.cgroups.Exists(criconfig.CgroupParent(p.in.Desired.Pod, x.node())) {
		t.Errorf("%v, marked %t", err, mark.IsSet())
	}
	l.cgroups.Fail(&cgroup.UnavailableError{})
	if err := x.prepare.applyCgroup(); err != nil || len(l.warnings()) != 1 ||
		!strings.Contains(l.warnings()[0], "without a cgroup of its own") {
		t.Errorf("on a machine without cgroups: %v, warnings %q", err, l.warnings())
	}
}

// TestFailedVolumes checks that the error names the volume with the kubelet's reason, and that the pod does not start
// without it.
func TestFailedVolumes(t *testing.T) {
	l := newLab(t, "i:1")
	text := pod("  containers: [{name: a, image: 'i:1', volumeMounts: [{name: h, mountPath: /h}]}]\n" +
		"  volumes: [{name: h, hostPath: {path: /not/there/f, type: FileOrCreate}}]\n")
	outcome, err := l.plan(model.PodRef{}, text).run(Options{})
	if err != nil || len(outcome.Failed) != 1 || outcome.Failed[0].Reason != "FailedMount" ||
		!strings.Contains(outcome.Err().Error(), "volume h") {
		t.Fatal(err, outcome.Err())
	}
	if len(l.server.Created().Containers) > 0 {
		t.Error("a container was created without its volume")
	}
}

// TestDNSOfPods checks that only pods of the API server use the DNS of the cluster and have events about it.
func TestDNSOfPods(t *testing.T) {
	own := strings.Replace(onePod(), "web", "own", 1)
	missing := func(event string) bool { return strings.Contains(event, "MissingClusterDNS") }
	l := newLab(t, "i:1")
	if p := l.applyAPI(onePod()); !slices.ContainsFunc(l.history(p.in.Pod), missing) {
		t.Errorf("without a cluster DNS: %q", l.history(p.in.Pod))
	}
	if p := l.apply(own); slices.ContainsFunc(l.history(p.in.Pod), missing) {
		t.Errorf("a pod from a file: %q", l.history(p.in.Pod))
	}
	l = newLab(t, "i:1")
	if err := l.executor.host.Identify(&model.NodeIdentity{Name: "n", ClusterDNS: []string{"10.0.0.10"}, ClusterDomain: "d"}); err != nil {
		t.Fatal(err)
	}
	for from, want := range map[*planned]string{l.applyAPI(onePod()): "[10.0.0.10] [default.svc.d svc.d d]", l.apply(own): "[] []"} {
		config, err := from.execution(Options{}).prepare.sandboxConfig(0)
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprintf("%v %v", config.GetDnsConfig().GetServers(), config.GetDnsConfig().GetSearches()); got != want {
			t.Errorf("%s, want %s", got, want)
		}
		if slices.ContainsFunc(l.history(from.in.Pod), missing) {
			t.Errorf("%q", l.history(from.in.Pod))
		}
	}
}
