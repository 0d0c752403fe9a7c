package metrics

import (
	"context"
	"errors"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestPodStates checks that pods and containers have the names and labels of kube-state-metrics. Pods that cannot be
// listed have no metrics.
func TestPodStates(t *testing.T) {
	list := &v1.PodList{Items: []v1.Pod{{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "u"},
		Status: v1.PodStatus{
			Phase:                 v1.PodRunning,
			Conditions:            []v1.PodCondition{{Type: v1.PodReady, Status: v1.ConditionFalse}},
			InitContainerStatuses: []v1.ContainerStatus{{Name: "init", Ready: true}},
			ContainerStatuses: []v1.ContainerStatus{
				{
					Name:         "a",
					Ready:        true,
					RestartCount: 3,
					LastTerminationState: v1.ContainerState{
						Terminated: &v1.ContainerStateTerminated{Reason: "OOMKilled"},
					},
				},
				{Name: "b", State: v1.ContainerState{Waiting: &v1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}},
			},
		},
	}}}
	var fails error
	m := New(two)
	m.ShowPods(func(context.Context) (*v1.PodList, error) { return list, fails })
	text := page(m)
	for _, line := range []string{
		`kube_pod_status_phase{namespace="default",phase="Running",pod="web",uid="u"} 1`,
		`kube_pod_status_phase{namespace="default",phase="Failed",pod="web",uid="u"} 0`,
		`kube_pod_status_ready{condition="false",namespace="default",pod="web",uid="u"} 1`,
		`kube_pod_status_ready{condition="true",namespace="default",pod="web",uid="u"} 0`,
		`kube_pod_container_status_ready{container="a",namespace="default",pod="web",uid="u"} 1`,
		`kube_pod_container_status_ready{container="b",namespace="default",pod="web",uid="u"} 0`,
		"# TYPE kube_pod_container_status_restarts_total counter",
		`kube_pod_container_status_restarts_total{container="a",namespace="default",pod="web",uid="u"} 3`,
		`kube_pod_init_container_status_ready{container="init",namespace="default",pod="web",uid="u"} 1`,
		`kube_pod_init_container_status_restarts_total{container="init",namespace="default",pod="web",uid="u"} 0`,
		`kube_pod_container_status_waiting_reason{container="b",namespace="default",pod="web",reason="CrashLoopBackOff",uid="u"} 1`,
		`kube_pod_container_status_last_terminated_reason{container="a",namespace="default",pod="web",reason="OOMKilled",uid="u"} 1`,
	} {
		if !strings.Contains(text, line+"\n") {
			t.Errorf("no %s in\n%s", line, text)
		}
	}
	fails = errors.New("no answer")
	m = New(two)
	m.ShowPods(func(context.Context) (*v1.PodList, error) { return list, fails })
	if text = page(m); strings.Contains(text, "kube_pod") || !strings.Contains(text, "kubelet_running_pods 2") {
		t.Errorf("without an answer:\n%s", text)
	}
}
