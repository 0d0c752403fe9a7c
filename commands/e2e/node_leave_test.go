package e2e

import (
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podctl/podctl/commands/exit"
	"github.com/podctl/podctl/runtime/cluster/apitest"
)

// leave runs `podctl agent leave`.
func (l *nodeLab) leave(flags ...string) (code int, printed string) {
	return l.run(append([]string{"agent", "leave", "--kubeconfig", "KUBECONFIG"}, flags...))
}

// TestNodeLeave exports the settings of a node for a kubelet, and takes the node out of its cluster: pods of the API
// server end, that of a file continues, and the agent does not join again until the user allows it.
func TestNodeLeave(t *testing.T) {
	l := newNodeLab(t)
	defer l.close()
	var node atomic.Bool // the credentials are those of a node
	node.Store(true)
	l.answerWith(func(r *http.Request) http.HandlerFunc {
		if node.Load() && r.Method == http.MethodDelete && r.URL.Path == "/api/v1/nodes/n1" {
			return apitest.Refusal(http.StatusForbidden, metav1.StatusReasonForbidden, 0)
		}
		return nil
	})
	daemon := plainPod(t, "daemon")
	daemon.OwnerReferences = []metav1.OwnerReference{
		{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "d", UID: "d", Controller: new(true)},
	}
	l.cluster.server.Put(daemon)
	l.cluster.server.Put(plainPod(t, "alone"))
	l.write("source/file.yaml",
		strings.ReplaceAll(strings.Replace(secretPods, "  serviceAccountName: default\n", "", 1), "NAME", "file"))

	l.start()
	l.untilRunning("daemon", "alone")
	l.until("the pod of the file runs", func() bool { return l.runs("file") })
	before := l.records()
	code, text := l.run([]string{"export", "--node"})
	for _, want := range []string{
		"\nport: " + strconv.Itoa(l.cluster.port) + "\n", "\nstaticPodPath: " + l.source() + "\n", "--kubeconfig=" + l.path("kubeconfig"),
		"--hostname-override=n1 --node-ip=192.0.2.10", "--root-dir=" + l.stateDir, "a kubelet evicts pods although",
	} {
		if code != exit.OK || !strings.Contains(text, want) {
			t.Errorf("export --node: exit code %d, without %q\n%s", code, want, text)
		}
	}

	if code, text := l.leave(); code != exit.Error || !strings.Contains(text, "default/alone; --force") || !l.runs("alone") {
		t.Errorf("without --force: %d\n%s", code, text)
	}
	if code, text := l.leave("--force"); code != exit.NotYet || !strings.Contains(text, "kubectl delete node n1") || l.runs("alone") || !l.runs("daemon") {
		t.Errorf("with the credentials of a node: %d\n%s", code, text)
	}
	node.Store(false)
	if code, text := l.leave("--force"); code != exit.OK || !strings.Contains(text, "has left its cluster") {
		t.Errorf("with those of an administrator: %d\n%s", code, text)
	}
	l.until("the agent runs without the cluster", l.isAlone)
	if left := l.cluster.server.Objects("nodes", "leases"); len(left) > 0 || l.cluster.server.Pod("default", "daemon") != nil {
		t.Errorf("left in the cluster: %v", left)
	}
	if l.runs("daemon") || !strings.Contains(strings.Join(before, "\n"), fileRecord(l.records())) {
		t.Errorf("records: %v", l.records())
	}
	l.stop(syscall.SIGTERM)
	l.start()
	if !l.isAlone() || !strings.Contains(l.log.String(), "has left its cluster") {
		t.Error("the agent joined again")
	}
	l.must("agent", "join")
	l.must("agent", "reload")
	l.until("the node is registered again", func() bool { return len(l.cluster.server.Objects("nodes")) > 0 })
	if !strings.Contains(strings.Join(before, "\n"), fileRecord(l.records())) {
		t.Errorf("records: %v", l.records())
	}
	l.stop(syscall.SIGTERM)
}

// isAlone reports whether the agent runs without a cluster.
func (l *nodeLab) isAlone() bool {
	code, text := l.run([]string{"agent", "status"})
	return code == exit.OK && !strings.Contains(text, "API server")
}

// fileRecord returns the record of the container of the pod from a file.
func fileRecord(records []string) string {
	for _, record := range records {
		if strings.Contains(record, "container file of file") {
			return record
		}
	}
	return "no record"
}
