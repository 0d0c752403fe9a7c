package mirrors

import (
	"fmt"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/podspec/podspectest"
)

var node = &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", UID: "node-uid"}}

const text = `{apiVersion: v1, kind: Pod, metadata: {namespace: a, name: %s, uid: %s}, spec: {containers: [{name: c, image: "%s"}]}}`

// desired returns a pod of a file.
func desired(t *testing.T, name, uid, image string) *podspec.Desired {
	t.Helper()
	return podspectest.Desired(t, fmt.Sprintf(text, name, uid, image))
}

// from returns a pod of another source. how contains "old" if an earlier version runs, and "leaving".
func from(t *testing.T, uid, image, how string) Pod {
	t.Helper()
	d := desired(t, "web", uid, image)
	return Pod{
		Desired: d, Hash: Hash(d.Pod, "n1"), Alone: !strings.Contains(how, "old"), Leaving: strings.Contains(how, "leaving"),
	}
}

// mirrorOf returns the mirror pod of a pod, as the API server stores it. A grace period of at least 0 means that it is
// being deleted.
func mirrorOf(p Pod, uid string, grace int64) *v1.Pod {
	m := newMirror(&p, node, time.Unix(1e9, 0))
	m.UID = "mirror-" + p.Desired.Pod.UID
	if m.Spec.Priority = new(int32); grace >= 0 {
		m.DeletionTimestamp, m.DeletionGracePeriodSeconds = &metav1.Time{Time: time.Unix(1, 0)}, &grace
	}
	if uid != "" {
		m.Annotations[v1.MirrorPodAnnotationKey] = uid
		delete(m.Annotations, annotationVersion)
	}
	return m
}

// TestActions checks when mirror pods are created and deleted.
func TestActions(t *testing.T) {
	one, two := from(t, "u1", "one", ""), from(t, "u1", "two", "")
	other := from(t, "u2", "two", "")
	leaves, old := from(t, "u1", "one", "leaving"), from(t, "u1", "two", "old")
	gone := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", UID: "x", DeletionTimestamp: &metav1.Time{}}}
	for name, c := range map[string]struct {
		state State
		want  string
	}{
		"a pod without a mirror pod":  {State{Pods: []Pod{one}}, "create a/web-n1"},
		"its first version runs":      {State{Pods: []Pod{old}}, "create a/web-n1"},
		"it is being deleted":         {State{Pods: []Pod{leaves}}, ""},
		"before the registration":     {State{Pods: []Pod{one}, Node: &v1.Node{}}, ""},
		"the Node is being deleted":   {State{Pods: []Pod{one}, Node: gone}, ""},
		"a mirror pod":                {State{Pods: []Pod{one}, Mirrors: []*v1.Pod{mirrorOf(one, "", -1)}}, ""},
		"an edit that is not applied": {State{Pods: []Pod{old}, Mirrors: []*v1.Pod{mirrorOf(one, "", -1)}}, ""},
		"an applied edit":             {State{Pods: []Pod{two}, Mirrors: []*v1.Pod{mirrorOf(one, "", -1)}}, "delete a/web-n1"},
		"a pod that is being deleted": {State{Pods: []Pod{leaves}, Mirrors: []*v1.Pod{mirrorOf(one, "", -1)}, Complete: true}, ""},
		"another version of it": {
			State{Pods: []Pod{leaves}, Mirrors: []*v1.Pod{mirrorOf(two, "", -1)}, Complete: true}, "",
		},
		"its successor waits":     {State{Pods: []Pod{other, leaves}, Mirrors: []*v1.Pod{mirrorOf(one, "", -1)}}, ""},
		"its successor runs":      {State{Pods: []Pod{other}, Mirrors: []*v1.Pod{mirrorOf(one, "", -1)}}, "delete a/web-n1"},
		"no pod":                  {State{Mirrors: []*v1.Pod{mirrorOf(one, "", -1)}, Complete: true}, "delete a/web-n1"},
		"sources that are unread": {State{Mirrors: []*v1.Pod{mirrorOf(one, "", -1)}}, ""},
		"a user deletes it":       {State{Pods: []Pod{one}, Mirrors: []*v1.Pod{mirrorOf(one, "", 30)}}, "delete a/web-n1"},
		"while the old one runs":  {State{Pods: []Pod{old}, Mirrors: []*v1.Pod{mirrorOf(one, "", 30)}}, "delete a/web-n1"},
		"finalizers keep it":      {State{Pods: []Pod{one}, Mirrors: []*v1.Pod{mirrorOf(one, "", 0)}}, ""},
		"a kubelet has made it":   {State{Pods: []Pod{one}, Mirrors: []*v1.Pod{mirrorOf(one, "u1", -1)}}, ""},
		"of another version":      {State{Pods: []Pod{two}, Mirrors: []*v1.Pod{mirrorOf(one, "u1", -1)}}, "delete a/web-n1"},
		"of another pod":          {State{Pods: []Pod{one}, Mirrors: []*v1.Pod{mirrorOf(one, "u9", -1)}}, "delete a/web-n1"},
	} {
		c.state.Name = "n1"
		if c.state.Node == nil {
			c.state.Node = node
		}
		var got []string
		for _, a := range c.state.actions() {
			verb := "create "
			if a.remove != nil {
				verb = "delete "
			}
			got = append(got, verb+nameOf(a.pod()).String())
		}
		if text := strings.Join(got, ", "); text != c.want {
			t.Errorf("%s: %q, want %q", name, text, c.want)
		}
	}
}

// TestOutdated checks which mirror pods show an earlier version: those of podctl with a uid from a file or a derived one,
// and those of a kubelet.
func TestOutdated(t *testing.T) {
	one, two := from(t, "u1", "one", ""), from(t, "u1", "two", "")
	derived := string(podspec.UID("a", "web"))
	for name, c := range map[string]struct {
		pods   []Pod
		mirror *v1.Pod
		want   int
	}{
		"the same":                   {[]Pod{one}, mirrorOf(one, "", -1), 0},
		"the same, of a kubelet":     {[]Pod{one}, mirrorOf(one, "u1", -1), 0},
		"the same, derived uid":      {[]Pod{from(t, derived, "one", "")}, mirrorOf(from(t, derived, "one", ""), "", -1), 0},
		"an edit":                    {[]Pod{two}, mirrorOf(one, "", -1), 1},
		"an edit, of a kubelet":      {[]Pod{two}, mirrorOf(one, "u1", -1), 1},
		"an edit, derived uid":       {[]Pod{from(t, derived, "two", "")}, mirrorOf(from(t, derived, "one", ""), "", -1), 1},
		"the earlier one leaves":     {[]Pod{from(t, "u2", "two", ""), from(t, "u1", "one", "leaving")}, mirrorOf(one, "", -1), 0},
		"no pod of this node has it": {nil, mirrorOf(one, "", -1), 0},
	} {
		s := State{Name: "n1", Node: node, Pods: c.pods, Mirrors: []*v1.Pod{c.mirror}}
		if got := s.Outdated(); len(got) != c.want || c.want > 0 && got[0] != c.mirror.UID {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestHash checks which changes of a pod lead to another mirror pod.
func TestHash(t *testing.T) {
	d := desired(t, "web", "u1", "one")
	first := Hash(d.Pod, "n1")
	if len(first) != 32 {
		t.Error(first)
	}
	same := d.Pod.DeepCopy()
	same.UID, same.ResourceVersion, same.Generation = "u2", "7", 3
	if Hash(same, "n1") != first {
		t.Error("the digest depends on metadata of the API")
	}
	for name, change := range map[string]func(*v1.Pod){
		"label":      func(p *v1.Pod) { p.Labels = map[string]string{"a": "b"} },
		"annotation": func(p *v1.Pod) { p.Annotations = map[string]string{"a": "b"} },
		"deadline":   func(p *v1.Pod) { p.Spec.ActiveDeadlineSeconds = new(int64) },
		"namespace":  func(p *v1.Pod) { p.Namespace = "b" },
	} {
		other := d.Pod.DeepCopy()
		if change(other); Hash(other, "n1") == first {
			t.Errorf("%s: the digest is the same", name)
		}
	}
	if Hash(d.Pod, "n2") == first {
		t.Error("the digest does not depend on the node")
	}
}
