package control

import (
	"bytes"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podctl/podctl/commands/terminal"
	"github.com/podctl/podctl/runtime/agent/api"
	"github.com/podctl/podctl/runtime/model"
)

// TestStatusBeginsWithProblems: problems of every kind come first, then the readiness of the agent. In the tables, the
// pods and workloads with problems come first.
func TestStatusBeginsWithProblems(t *testing.T) {
	pod := func(name string) api.Pod {
		return api.Pod{PodRef: model.PodRef{Namespace: "default", Name: name, UID: types.UID(name)}}
	}
	fine, failed, held, rejected := pod("fine"), pod("failed"), pod("held"), pod("rejected")
	failed.Error = "no image"
	held.Waiting = []string{"a held"}
	rejected.Rejection = &model.Rejection{Message: "too big"}
	s := &api.Status{
		Ready:    true,
		Runtime:  api.Runtime{Endpoint: "unix:///x", Error: "refused"},
		Pressure: []string{"MemoryPressure"},
		Sources: []api.Source{{
			Name: "/pods", Complete: true, Pods: 2, Problems: []api.Problem{{File: "a.yaml", Text: "bad\nyaml"}},
		}},
		Problems: []api.Problem{{File: "b.yaml", Text: "given twice"}},
		Pods:     []api.Pod{fine, held, failed, rejected},
		Workloads: []api.Workload{
			{Namespace: "default", Kind: "Deployment", Name: "good"},
			{Namespace: "default", Kind: "Job", Name: "bad", Error: "stuck"},
		},
	}
	var out, notes bytes.Buffer
	now := func() time.Time { return time.Unix(0, 0) }
	io := terminal.NewIO(&terminal.Env{
		In: strings.NewReader(""), Out: &out, Err: &notes, Now: now, Getenv: func(string) string { return "" },
	})
	states := map[types.UID]*v1.Pod{"fine": {
		Spec: v1.PodSpec{Containers: []v1.Container{{Name: "a"}}},
		Status: v1.PodStatus{Phase: v1.PodRunning, ContainerStatuses: []v1.ContainerStatus{
			{Name: "a", Ready: true, State: v1.ContainerState{Running: &v1.ContainerStateRunning{}}},
		}},
	}}
	if err := show(io, s, states); err != nil {
		t.Fatal(err)
	}
	at := -1
	for _, want := range []string{
		"problem: unix:///x does not answer: refused\n", "problem: the node has MemoryPressure",
		"problem: a.yaml: bad yaml\n", "problem: b.yaml: given twice\n",
		"problem: pod default/failed: last pass failed: no image\n",
		"problem: pod default/rejected: not admitted: too big\n", "problem: job default/bad: stuck\n",
		"agent is running: ready, ", "source /pods: 2 pods\n", "READY", "default     failed",
		"default     rejected", "default     held", "default     fine       1/1     Running",
		"job/bad", "deployment/good",
	} {
		next := strings.Index(out.String(), want)
		if next <= at {
			t.Errorf("%q is at %d, after %d, in\n%s", want, next, at, out.String())
		}
		at = next
	}
}

// TestStatusOfCluster checks the cluster's part of a status: its problems come first, and pods have their uid.
func TestStatusOfCluster(t *testing.T) {
	now := time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	good := api.Cluster{
		APIServer: api.Server{Address: "https://a:1", Responds: true, Since: now.Add(-time.Hour), LastList: now.Add(-time.Minute)},
		Node: api.ClusterNode{
			Name: "n1", UID: "node-uid", LeaseRenewed: now.Add(-4 * time.Second), StatusSent: now.Add(-time.Minute),
			Conditions: []v1.NodeCondition{
				{Type: v1.NodeMemoryPressure, Status: v1.ConditionFalse, Reason: "Enough", Message: "enough"},
				{Type: v1.NodeReady, Status: v1.ConditionTrue, Reason: "KubeletReady", Message: "ready"},
			},
		},
		Server: api.NodeServer{
			Address: "[::]:10250", Authorization: "Webhook", ClientCAFile: "/ca", Anonymous: true, ReadOnly: "127.0.0.1:10255",
		},
		Statuses: api.Requests{LastSent: now.Add(-2 * time.Second)},
		Certificates: []api.Certificate{
			{Use: "client", Subject: "CN=system:node:n1", Expires: now.Add(30 * 24 * time.Hour)},
			{Use: "serving", Expires: now.Add(365 * 24 * time.Hour)},
		},
	}
	bad := api.Cluster{
		APIServer: api.Server{Address: "https://a:1", Since: now.Add(-time.Hour), Error: "connection refused\n"},
		Node: api.ClusterNode{Name: "n1", Unschedulable: true, Conditions: []v1.NodeCondition{
			{Type: v1.NodeDiskPressure, Status: v1.ConditionTrue, Reason: "Full", Message: "full"},
			{Type: v1.NodeReady, Status: v1.ConditionUnknown, Reason: "NodeStatusUnknown", Message: "no status"},
		}},
		Statuses: api.Requests{Pending: 3, Error: "refused"}, Events: api.Requests{Pending: 2},
		Certificates: []api.Certificate{
			{Use: "client", Subject: "CN=c", Expires: now.Add(-time.Hour)}, {Use: "serving", Error: "absent"},
		},
	}
	for name, c := range map[string]struct {
		cluster *api.Cluster
		want    []string
	}{
		"good": {&good, []string{
			"agent is running", "API server: https://a:1 responds since ", "(60m), pods listed 60s ago\n",
			"node n1: uid node-uid, lease renewed 4s ago, status sent 60s ago\n", "  Ready true: KubeletReady: ready\n",
			"server [::]:10250: authorization-mode Webhook, client-ca-file /ca, anonymous-auth; read-only 127.0.0.1:10255\n",
			"status of pods: sent 2s ago, 0 statuses and 0 events pending\n",
			"client certificate CN=system:node:n1: expires in 30d\n", "serving certificate: expires in 365d\n",
			"NAME   UID", "pod-uid",
		}},
		"bad": {&bad, []string{
			"problem: https://a:1 does not respond since ", "(60m): connection refused\n",
			"problem: 3 statuses and 2 events pending: refused\n", "problem: node n1: DiskPressure true: Full: full\n",
			"problem: node n1: Ready unknown: NodeStatusUnknown: no status\n", "problem: client certificate CN=c: expired 60m ago\n",
			"problem: serving certificate: absent\n", "agent is running", "API server", "pods listed never\n",
			"node n1: not registered, unschedulable, lease renewed never, status sent never\n",
		}},
		"another cluster": {&api.Cluster{APIServer: api.Server{
			Address: "https://a:1", Responds: true, Since: now, Refusal: "this is another cluster",
		}}, []string{"problem: API server: https://a:1: this is another cluster\n", "agent is running"}},
		"not asked": {&api.Cluster{APIServer: api.Server{Address: "https://a:1"}}, []string{
			"agent is running", "API server: https://a:1 has not answered yet",
		}},
	} {
		var out bytes.Buffer
		io := terminal.NewIO(&terminal.Env{
			In: strings.NewReader(""), Out: &out, Err: &out, Now: func() time.Time { return now },
			Getenv: func(string) string { return "" },
		})
		s := &api.Status{
			Cluster: c.cluster, Runtime: api.Runtime{Answers: true},
			Pods: []api.Pod{{PodRef: model.PodRef{Namespace: "a", Name: "web", UID: "pod-uid"}}},
		}
		if err := show(io, s, nil); err != nil {
			t.Fatal(err)
		}
		rest := out.String()
		for _, want := range c.want {
			_, after, found := strings.Cut(rest, want)
			if !found {
				t.Errorf("%s: no %q in the order in\n%s", name, want, out.String())
				break
			}
			rest = after
		}
		if problems := name == "bad" || name == "another cluster"; !problems && strings.Contains(out.String(), "problem") {
			t.Errorf("%s: %s", name, out.String())
		}
	}
}

// TestCertificateText checks the text for a certificate and the request for the next one, and when it is a problem.
func TestCertificateText(t *testing.T) {
	now := time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		certificate api.Certificate
		want        string
		problem     bool
	}{
		{api.Certificate{Subject: "CN=c", Expires: now.Add(time.Hour), Rotates: true}, "CN=c: expires in 60m", false},
		{api.Certificate{Subject: "CN=c", Expires: now.Add(time.Hour)}, "CN=c: expires in 60m", true},
		{api.Certificate{Rotates: true}, "client certificate: there is none yet", true},
		{
			api.Certificate{Rotates: true, Request: "csr-a", Requested: now.Add(-time.Minute)},
			"there is none yet; CSR csr-a has waited 60s for approval: kubectl certificate approve csr-a", true,
		},
		{
			api.Certificate{Subject: "CN=c", Expires: now.Add(time.Hour), Request: "csr-a", Requested: now, Approved: true, Rotates: true},
			"expires in 60m; CSR csr-a is approved and waits for its signer", true,
		},
		{
			api.Certificate{Subject: "CN=c", Expires: now.Add(-time.Hour), Error: "refused", Rotates: true},
			"expired 60m ago; refused", true,
		},
	} {
		c.certificate.Use = "client"
		if text := certificateText(&c.certificate, now); !strings.HasSuffix(text, c.want) {
			t.Errorf("%s, want %s", text, c.want)
		}
		cluster := &api.Cluster{APIServer: api.Server{Responds: true}, Certificates: []api.Certificate{c.certificate}}
		if problems := clusterProblems(cluster, now); (len(problems) > 0) != c.problem {
			t.Errorf("%s: problems %v", c.want, problems)
		}
	}
}
