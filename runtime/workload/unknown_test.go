package workload

import (
	"errors"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/model"
)

// expandUnknown returns the expansion of a life in which all pods are ready, except one that could not be observed.
func expandUnknown(l *life, name string) *Expansion {
	in := &Input{Workload: l.w, Now: l.now}
	for _, p := range l.pods {
		pod := Pod{Applied: p.applied, Deleting: p.deleting}
		pod.Status.Conditions = []v1.PodCondition{{Type: v1.PodReady, Status: v1.ConditionTrue}}
		if p.applied.Pod.Name == name {
			pod.Standing = model.Standing{Status: v1.PodStatus{Phase: v1.PodUnknown}, Pending: true, Unknown: errors.New("no answer")}
		}
		in.Pods = append(in.Pods, pod)
	}
	return Expand(in)
}

// imagesNow lists the pods that an expansion wants, with the version of their image, and those that it deletes.
func imagesNow(x *Expansion) string {
	var texts []string
	for _, d := range x.Pods {
		texts = append(texts, d.Pod.Name+strings.TrimPrefix(d.Pod.Spec.Containers[0].Image, "registry.local/app"))
	}
	for _, ref := range x.Gone {
		texts = append(texts, "-"+ref.Name)
	}
	return strings.Join(texts, " ")
}

// TestUnknownPods checks that a pod that cannot be observed keeps its version and counts as unavailable. The others
// continue as far as the strategy allows.
func TestUnknownPods(t *testing.T) {
	const one = "strategy: {rollingUpdate: {maxSurge: 0, maxUnavailable: 1}}"
	const two = "strategy: {rollingUpdate: {maxSurge: 0, maxUnavailable: 2}}"
	for name, c := range map[string]struct {
		kind         string
		before, then []string
		unknown      string
		version      int
		want         string
	}{
		"nothing to do": {podspec.KindDeployment, []string{"replicas: 2"}, nil, "web-1", 1, "web-0:1 web-1:1"},
		"surplus": {
			podspec.KindDeployment,
			[]string{"replicas: 3", one},
			[]string{"replicas: 2", one},
			"web-2",
			1,
			"web-0:1 web-1:1 -web-2",
		},
		"surplus of others": {
			podspec.KindDeployment,
			[]string{"replicas: 3", one},
			[]string{"replicas: 1", one},
			"web-0",
			1,
			"web-0:1 -web-1 -web-2",
		},
		"no room":          {podspec.KindDeployment, []string{"replicas: 3", one}, nil, "web-2", 2, "web-0:1 web-1:1 web-2:1"},
		"capacity for one": {podspec.KindDeployment, []string{"replicas: 3", two}, nil, "web-2", 2, "web-0:2 web-1:1 web-2:1"},
		"stateful": {
			podspec.KindStatefulSet,
			[]string{"replicas: 3", "serviceName: web"},
			nil,
			"web-1",
			2,
			"web-0:1 web-1:1 web-2:1",
		},
		"stateful, parallel": {podspec.KindStatefulSet, []string{
			"replicas: 3",
			"serviceName: web",
			"podManagementPolicy: Parallel",
			"updateStrategy: {rollingUpdate: {maxUnavailable: 2}}",
		}, nil, "web-1", 2, "web-0:1 web-1:1 web-2:2"},
		"replicas": {
			podspec.KindReplicaSet,
			[]string{"replicas: 2"},
			[]string{"replicas: 3"},
			"web-1",
			1,
			"web-0:1 web-1:1 web-2:1",
		},
	} {
		l := newLife(t, 1)
		l.w = loaded(t, c.kind, 1, c.before...)
		l.settle(func() {})
		then := c.before
		if c.then != nil {
			then = c.then
		}
		l.w = loaded(t, c.kind, c.version, then...)
		x := expandUnknown(l, c.unknown)
		if got := imagesNow(x); got != c.want {
			t.Errorf("%s: %q, want %q (%v)", name, got, c.want, x.Waits)
		}
		if len(x.Unknown) != 1 || x.Unknown[0].Pod.Name != c.unknown ||
			x.Status.Unknown != 1 || x.Status.Available != len(l.pods)-1 || x.Status.Complete() || x.Next.IsZero() {
			t.Errorf("%s: %+v", name, x)
		}
	}
}

// TestUnknownTries checks that a try of a Job that cannot be observed is neither repeated nor deleted, also when the
// Job has ended.
func TestUnknownTries(t *testing.T) {
	l := newJobLife(t, v1.RestartPolicyNever, "completions: 2", "parallelism: 2")
	l.want("at first", "work-0", "work-1")
	l.pods["work-0"].Standing = model.Standing{Status: v1.PodStatus{Phase: v1.PodUnknown}, Unknown: errors.New("no answer")}
	l.want("one is unknown", "work-0", "work-1")
	l.pods["work-0"].Standing = model.Standing{Status: v1.PodStatus{Phase: v1.PodSucceeded}}
	l.pods["work-1"].Status.Phase = v1.PodSucceeded
	l.want("both have ended", "work-0", "work-1")
	l.pods["work-0"].Standing = model.Standing{Status: v1.PodStatus{Phase: v1.PodUnknown}, Unknown: errors.New("no answer")}
	l.want("over, and one is unknown", "work-0", "work-1")
}
