package podstatus

import (
	"fmt"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/model/modeltest"
)

func never() *v1.ContainerRestartPolicy     { return ptr.To(v1.ContainerRestartPolicyNever) }
func onFailure() *v1.ContainerRestartPolicy { return ptr.To(v1.ContainerRestartPolicyOnFailure) }
func always() *v1.ContainerRestartPolicy    { return ptr.To(v1.ContainerRestartPolicyAlways) }

func rule(action v1.ContainerRestartRuleAction, op v1.ContainerRestartRuleOnExitCodesOperator, codes ...int32) v1.ContainerRestartRule {
	return v1.ContainerRestartRule{Action: action, ExitCodes: &v1.ContainerRestartRuleOnExitCodes{Operator: op, Values: codes}}
}

func podWith(p v1.RestartPolicy) *v1.Pod { return &v1.Pod{Spec: v1.PodSpec{RestartPolicy: p}} }

// TestRestartWantedByState checks that running containers continue, that containers that never ran start, and that the
// policy decides for exited ones.
func TestRestartWantedByState(t *testing.T) {
	for _, p := range []v1.RestartPolicy{v1.RestartPolicyAlways, v1.RestartPolicyOnFailure, v1.RestartPolicyNever} {
		for state, want := range map[model.ContainerState]bool{model.Running: false, model.Created: true, model.Unknown: true} {
			if got := RestartWanted(podWith(p), &v1.Container{}, &model.Container{State: state}); got != want {
				t.Errorf("%s, %s: %t", p, state, got)
			}
		}
		if !RestartWanted(podWith(p), &v1.Container{}, nil) {
			t.Errorf("%s: a container without a record does not start", p)
		}
	}
}

// TestRestartWantedByExitCode checks that the container's own rules come first, then its own policy, then the pod's.
// Rules without a policy of the container are ignored.
func TestRestartWantedByExitCode(t *testing.T) {
	in, notIn := v1.ContainerRestartRuleOnExitCodesOpIn, v1.ContainerRestartRuleOnExitCodesOpNotIn
	restart := v1.ContainerRestartRuleActionRestart
	for name, c := range map[string]struct {
		pod   v1.RestartPolicy
		own   *v1.ContainerRestartPolicy
		rules []v1.ContainerRestartRule
		// want has the exit codes after which it runs again.
		want map[int32]bool
	}{
		"Always":                     {v1.RestartPolicyAlways, nil, nil, map[int32]bool{0: true, 1: true}},
		"OnFailure":                  {v1.RestartPolicyOnFailure, nil, nil, map[int32]bool{0: false, 1: true}},
		"Never":                      {v1.RestartPolicyNever, nil, nil, map[int32]bool{0: false, 1: false}},
		"own Always under Never":     {v1.RestartPolicyNever, always(), nil, map[int32]bool{0: true, 1: true}},
		"own OnFailure under Always": {v1.RestartPolicyAlways, onFailure(), nil, map[int32]bool{0: false, 1: true}},
		"own Never under Always":     {v1.RestartPolicyAlways, never(), nil, map[int32]bool{0: false, 1: false}},
		"a rule under Never": {
			v1.RestartPolicyNever,
			never(),
			[]v1.ContainerRestartRule{rule(restart, in, 3, 42)},
			map[int32]bool{0: false, 3: true, 42: true, 4: false},
		},
		"a rule for all but some": {
			v1.RestartPolicyNever,
			never(),
			[]v1.ContainerRestartRule{rule(restart, notIn, 0, 1)},
			map[int32]bool{0: false, 1: false, 2: true},
		},
		"the second rule": {
			v1.RestartPolicyNever,
			never(),
			[]v1.ContainerRestartRule{rule(restart, in, 3), rule(restart, in, 4)},
			map[int32]bool{3: true, 4: true, 5: false},
		},
		"a rule with OnFailure": {
			v1.RestartPolicyNever,
			onFailure(),
			[]v1.ContainerRestartRule{rule(restart, in, 0)},
			map[int32]bool{0: true, 1: true},
		},
		"a rule without a policy": {
			v1.RestartPolicyNever,
			nil,
			[]v1.ContainerRestartRule{rule(restart, in, 3)},
			map[int32]bool{3: false},
		},
		"a rule without exit codes": {
			v1.RestartPolicyNever,
			never(),
			[]v1.ContainerRestartRule{{Action: restart}},
			map[int32]bool{0: false, 3: false},
		},
		"a rule of an unknown operator": {
			v1.RestartPolicyNever,
			never(),
			[]v1.ContainerRestartRule{rule(restart, "Above", 3)},
			map[int32]bool{3: false, 4: false},
		},
	} {
		spec := &v1.Container{RestartPolicy: c.own, RestartPolicyRules: c.rules}
		for code, want := range c.want {
			if got := RestartWanted(podWith(c.pod), spec, &model.Container{State: model.Exited, ExitCode: code}); got != want {
				t.Errorf("%s: after exit code %d: %t", name, code, got)
			}
		}
	}
}

// TestMayRestart checks that no rule counts for a container that is being stopped, because it has no exit code yet. Any
// rule may restart one that failed to start.
func TestMayRestart(t *testing.T) {
	some := []v1.ContainerRestartRule{rule(v1.ContainerRestartRuleActionRestart, v1.ContainerRestartRuleOnExitCodesOpIn, 3)}
	for name, c := range map[string]struct {
		pod          v1.RestartPolicy
		own          *v1.ContainerRestartPolicy
		rules        []v1.ContainerRestartRule
		stopped, may bool
	}{
		"Always":                 {v1.RestartPolicyAlways, nil, nil, true, true},
		"OnFailure":              {v1.RestartPolicyOnFailure, nil, nil, true, true},
		"Never":                  {v1.RestartPolicyNever, nil, nil, false, false},
		"own Never":              {v1.RestartPolicyAlways, never(), nil, false, false},
		"own Never with rules":   {v1.RestartPolicyAlways, never(), some, false, true},
		"own Always under Never": {v1.RestartPolicyNever, always(), nil, true, true},
	} {
		pod, spec := podWith(c.pod), &v1.Container{RestartPolicy: c.own, RestartPolicyRules: c.rules}
		if stopped, may := RestartsWhenStopped(pod, spec), MayRestart(pod, spec); stopped != c.stopped || may != c.may {
			t.Errorf("%s: when stopped %t, at all %t", name, stopped, may)
		}
	}
}

// TestSucceededForGood checks that only a container that exited 0 and restarts only on failures is left out of a new
// sandbox, unless podctl ended it.
func TestSucceededForGood(t *testing.T) {
	for name, c := range map[string]struct {
		policy  v1.RestartPolicy
		state   model.ContainerState
		code    int32
		stopped bool
		want    bool
	}{
		"done":                       {v1.RestartPolicyOnFailure, model.Exited, 0, false, true},
		"failed":                     {v1.RestartPolicyOnFailure, model.Exited, 1, false, false},
		"running":                    {v1.RestartPolicyOnFailure, model.Running, 0, false, false},
		"done, and always restarted": {v1.RestartPolicyAlways, model.Exited, 0, false, false},
		"done, under Never":          {v1.RestartPolicyNever, model.Exited, 0, false, false},
		"stopped to run again":       {v1.RestartPolicyOnFailure, model.Exited, 0, true, false},
	} {
		w := policy(t, c.policy).Sandbox("s0", 0, model.SandboxReady)
		rec := w.Container("s0", "app", 0, c.state)
		rec.ExitCode = c.code
		if c.stopped {
			w.Memory.PendingRestarts = map[string]string{"app": rec.ID}
		}
		ref, _ := podspec.FindContainer(w.Desired.Pod, "app")
		if got := podOf(w).SucceededForGood(ref); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
	w := policy(t, v1.RestartPolicyOnFailure)
	ref, _ := podspec.FindContainer(w.Desired.Pod, "app")
	if podOf(w).SucceededForGood(ref) {
		t.Error("a container without a record has succeeded")
	}
}

func TestInitFailed(t *testing.T) {
	for want, records := range map[bool][]model.Container{
		true:  {{ExitCode: 1}, {ExitCode: 137, Reason: "OOMKilled"}, {ExitCode: 0, Reason: "OOMKilled"}},
		false: {{}, {Reason: "Completed"}},
	} {
		for _, c := range records {
			if InitFailed(&c) != want {
				t.Errorf("exit code %d, %q: %t", c.ExitCode, c.Reason, !want)
			}
		}
	}
}

// TestRestartsAll checks that any container except a debug container can restart all by its rule.
func TestRestartsAll(t *testing.T) {
	const all = ", restartPolicy: Never, restartPolicyRules: [{action: RestartAllContainers, exitCodes: {operator: In, values: [42]}}]"
	spec := "  initContainers: [{name: seed, image: i:1%s}]\n  containers: [{name: app, image: i:1%s}, {name: log, image: i:1}]\n"
	for name, c := range map[string]struct {
		text      string
		container string
		state     model.ContainerState
		code      int32
		want      bool
	}{
		"a regular container": {fmt.Sprintf(spec, "", all), "app", model.Exited, 42, true},
		"an init container":   {fmt.Sprintf(spec, all, ""), "seed", model.Exited, 42, true},
		"another exit code":   {fmt.Sprintf(spec, "", all), "app", model.Exited, 41, false},
		"another container":   {fmt.Sprintf(spec, "", all), "log", model.Exited, 42, false},
		"the container runs":  {fmt.Sprintf(spec, "", all), "app", model.Running, 42, false},
		"no rule":             {fmt.Sprintf(spec, "", ""), "app", model.Exited, 42, false},
		"a rule for it alone": {fmt.Sprintf(spec, "", ", restartPolicy: Never, restartPolicyRules: "+
			"[{action: Restart, exitCodes: {operator: In, values: [42]}}]"), "app", model.Exited, 42, false},
		"a record of old that": {fmt.Sprintf(spec, "", all), "app", model.Created, 42, false},
	} {
		w := web(t, c.text).Sandbox("s0", 0, model.SandboxReady)
		w.Container("s0", c.container, 0, c.state).ExitCode = c.code
		if got := podOf(w).RestartsAll(); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// TestLasting checks that debug containers are left out.
func TestLasting(t *testing.T) {
	d := modeltest.Load(t, modeltest.Pod("  initContainers: [{name: a, image: i:1}]\n  containers: [{name: b, "+
		"image: i:1}]\n  ephemeralContainers: [{name: c, image: i:1}]\n"))
	var names []string
	for _, ref := range Lasting(d.Pod) {
		names = append(names, ref.Name)
	}
	if fmt.Sprint(names) != "[a b]" {
		t.Errorf("%v", names)
	}
}
