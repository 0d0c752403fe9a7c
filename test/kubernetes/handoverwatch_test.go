package kubernetes

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os/exec"
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// watch has the versions of all pods and of the Node that the API server had while it ran.
type watch struct {
	programs []*exec.Cmd
	done     []chan error
	pods     []event[v1.Pod]
	nodes    []event[v1.Node]
}

// event is one version of an object.
type event[T any] struct {
	Type   string
	Object T
}

// watch starts to record versions.
func (h *handOver) watch(t *testing.T) *watch {
	t.Helper()
	w := &watch{}
	pods := h.command(t, "get", "pods", "-A", "--watch", "--output-watch-events", "-o", "json")
	nodes := h.command(t, "get", "nodes", "--watch", "--output-watch-events", "-o", "json")
	w.programs = []*exec.Cmd{pods, nodes}
	w.done = []chan error{follow(t, pods, &w.pods), follow(t, nodes, &w.nodes)}
	return w
}

// follow starts kubectl and decodes its events until it ends.
func follow[T any](t *testing.T, cmd *exec.Cmd, into *[]event[T]) chan error {
	t.Helper()
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		d := json.NewDecoder(out)
		for {
			var e event[T]
			if err := d.Decode(&e); err != nil {
				if errors.Is(err, io.EOF) {
					err = nil
				}
				done <- err
				return
			}
			*into = append(*into, e)
		}
	}()
	return done
}

// end stops the watch. It fails the test if the watch has ended before.
func (w *watch) end(t *testing.T) {
	t.Helper()
	for i, cmd := range w.programs {
		select {
		case err := <-w.done[i]:
			t.Errorf("the watch has ended: %v", err)
		default:
			cmd.Process.Kill() //nolint:errcheck // it may have ended
			<-w.done[i]        //nolint:errcheck // it was killed
		}
		cmd.Wait() //nolint:errcheck // it was killed
	}
	if len(w.pods) == 0 || len(w.nodes) == 0 {
		t.Errorf("the watch has seen %d versions of pods and %d of the node", len(w.pods), len(w.nodes))
	}
}

// changes returns the facts of pods that another version has, and each change of the condition Ready of the Node.
func (w *watch) changes(before map[types.UID]*v1.Pod) (lines []string) {
	last := map[types.UID]map[string]string{}
	for uid, p := range before {
		last[uid] = factsOf(p)
	}
	for i := range w.pods {
		p := &w.pods[i].Object
		was, known := last[p.UID]
		if !known {
			was = nil
		}
		now := factsOf(p)
		if w.pods[i].Type == "DELETED" {
			now["deleted"] = "true"
		}
		for _, name := range slices.Sorted(maps.Keys(merged(was, now))) {
			if was[name] != now[name] {
				lines = append(lines, fmt.Sprintf("%s/%s: %s was %q, is %q", p.Namespace, p.Name, name, was[name], now[name]))
			}
		}
		last[p.UID] = now
	}
	was := v1.ConditionTrue
	for i := range w.nodes {
		for _, c := range w.nodes[i].Object.Status.Conditions {
			if c.Type == v1.NodeReady && c.Status != was {
				was = c.Status
				lines = append(lines, fmt.Sprintf("the node: Ready is %s: %s: %s", c.Status, c.Reason, c.Message))
			}
		}
	}
	return lines
}

func merged(a, b map[string]string) map[string]string {
	all := maps.Clone(b)
	maps.Copy(all, a)
	return all
}

// factsOf returns what a change of the node's program must not change in a pod.
func factsOf(p *v1.Pod) map[string]string {
	f := map[string]string{
		"phase": string(p.Status.Phase), "reason": p.Status.Reason, "message": p.Status.Message,
		"ips": fmt.Sprint(p.Status.PodIPs), "host": fmt.Sprint(p.Status.HostIPs), "start": timeOf(p.Status.StartTime),
		"deletion": timeOf(p.DeletionTimestamp), "generation": fmt.Sprint(p.Generation), "class": string(p.Status.QOSClass),
		"observed generation": fmt.Sprint(p.Status.ObservedGeneration),
		"annotations":         fmt.Sprint(p.Annotations),
	}
	for _, c := range p.Status.Conditions {
		f["condition "+string(c.Type)] = fmt.Sprintf("%s since %s %s", c.Status, timeOf(&c.LastTransitionTime), c.Reason)
	}
	s := &p.Status
	for _, c := range slices.Concat(s.InitContainerStatuses, s.ContainerStatuses, s.EphemeralContainerStatuses) {
		state := "waiting"
		switch {
		case c.State.Running != nil:
			state = "running since " + timeOf(&c.State.Running.StartedAt)
		case c.State.Terminated != nil:
			state = fmt.Sprint("terminated ", *c.State.Terminated)
		}
		for name, value := range map[string]any{
			"state": state, "id": c.ContainerID, "restarts": c.RestartCount, "ready": c.Ready,
			"started": c.Started != nil && *c.Started, "image": c.ImageID, "last state": c.LastTerminationState.Terminated,
		} {
			f[c.Name+" "+name] = fmt.Sprint(value)
		}
	}
	return f
}

func timeOf(t *metav1.Time) string {
	if t == nil {
		return ""
	}
	return t.UTC().Format("15:04:05")
}

// pods returns all pods of the API server.
func (h *handOver) pods(t *testing.T) map[types.UID]*v1.Pod {
	t.Helper()
	var list v1.PodList
	if err := json.Unmarshal([]byte(h.must(t, "get", "pods", "-A", "-o", "json")), &list); err != nil {
		t.Fatal(err)
	}
	all := map[types.UID]*v1.Pod{}
	for i := range list.Items {
		all[list.Items[i].UID] = &list.Items[i]
	}
	return all
}

// conditionOf returns the status of a condition.
func conditionOf(p *v1.Pod, kind v1.PodConditionType) string {
	for _, c := range p.Status.Conditions {
		if c.Type == kind {
			return string(c.Status)
		}
	}
	return ""
}
