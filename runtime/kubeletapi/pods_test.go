package kubeletapi

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podctl/podctl/podspec"
)

// TestChoose checks which of several pods a request gets.
func TestChoose(t *testing.T) {
	leaving, staying, newest := pod("ns", "web", "leaving", "api"), pod("ns", "web", "staying", "api"), pod("ns", "web", "newest", "api")
	now := metav1.Now()
	leaving.Pod.DeletionTimestamp = &now
	leaving.Pod.CreationTimestamp, staying.Pod.CreationTimestamp, newest.Pod.CreationTimestamp = born(9), born(1), born(2)
	file, applied, clash := pod("ns", "web", "file", "files"), pod("ns", "tool", "applied", ""), pod("ns", "web-node", "clash", "api")
	file.Pod.CreationTimestamp = born(99)
	elsewhere, same := pod("other", "web", "elsewhere", "api"), pod("ns", "web", "same", "api")
	same.Pod.CreationTimestamp = newest.Pod.CreationTimestamp
	for name, c := range map[string]struct {
		shown []*podspec.Desired
		want  podName
		found string
	}{
		"the newest that stays":      {[]*podspec.Desired{leaving, elsewhere, staying, newest}, podName{"ns", "web", ""}, "newest"},
		"the first of one age":       {[]*podspec.Desired{same, newest}, podName{"ns", "web", ""}, "same"},
		"only one that leaves":       {[]*podspec.Desired{leaving, elsewhere}, podName{"ns", "web", ""}, "leaving"},
		"by its uid":                 {[]*podspec.Desired{staying, leaving, newest}, podName{"ns", "web", "leaving"}, "leaving"},
		"by a uid that is not there": {[]*podspec.Desired{staying, leaving, newest}, podName{"ns", "web", "x"}, "newest"},
		"the API before a file":      {[]*podspec.Desired{file, staying}, podName{"ns", "web", ""}, "staying"},
		"a file by its API name":     {[]*podspec.Desired{file, staying}, podName{"ns", "web-node", ""}, "file"},
		"a file by its name":         {[]*podspec.Desired{file, applied}, podName{"ns", "web", ""}, "file"},
		"applied by hand":            {[]*podspec.Desired{file, applied}, podName{"ns", "tool-node", ""}, "applied"},
		"two API names":              {[]*podspec.Desired{file, clash}, podName{"ns", "web-node", "clash"}, "clash"},
		"an API pod has one name":    {[]*podspec.Desired{staying}, podName{"ns", "web-node", ""}, ""},
		"another namespace":          {[]*podspec.Desired{elsewhere}, podName{"ns", "web", ""}, ""},
	} {
		got := ""
		if d := choose(c.shown, c.want, "node"); d != nil {
			got = string(d.Pod.UID)
		}
		if got != c.found {
			t.Errorf("%s: %q, not %q", name, got, c.found)
		}
	}
}

// TestPods checks the list of pods in the form of the API.
func TestPods(t *testing.T) {
	fromFile, fromAPI := pod("ns", "web", "u1", "files", v1.Container{Name: "app"}), pod("ns", "db", "u2", "api", v1.Container{Name: "app"})
	fromFile.Pod.TypeMeta = metav1.TypeMeta{Kind: "Pod", APIVersion: "v1"}
	fromFile.Pod.Annotations = map[string]string{"a": "b"}
	agent := &pods{shown: []*podspec.Desired{fromFile, fromAPI}, status: map[types.UID]v1.PodStatus{"u1": {Phase: v1.PodRunning}}}
	s := serve(t, agent, newRuntime(t))
	for _, path := range []string{"/pods", "/pods/"} {
		code, text := s.do("GET", path, "")
		var list struct {
			metav1.TypeMeta
			Items []map[string]any
		}
		err := json.Unmarshal([]byte(text), &list)
		if err != nil || code != http.StatusOK || list.Kind != "PodList" || list.APIVersion != "v1" || len(list.Items) != 2 {
			t.Fatalf("%s: %d %v %s", path, code, err, text)
		}
		one, _ := json.Marshal(list.Items[0])
		two, _ := json.Marshal(list.Items[1])
		for _, want := range []string{
			`"name":"web-node"`,
			`"nodeName":"node"`,
			`"kubernetes.io/config.source":"file"`,
			`"a":"b"`,
			`"phase":"Running"`,
		} {
			if !strings.Contains(string(one), want) {
				t.Errorf("%s is not in %s", want, one)
			}
		}
		if strings.Contains(string(one), `"kind":"Pod"`) || !strings.Contains(string(two), `"name":"db"`) ||
			!strings.Contains(string(two), `"kubernetes.io/config.source":"api"`) {
			t.Errorf("%s %s", one, two)
		}
	}
	p := inAPI(fromFile.Pod, fromFile, "node")
	if p.Name != "web-node" || len(fromFile.Pod.Annotations) != 1 || fromFile.Pod.Name != "web" {
		t.Errorf("the list changes the pod: %v", fromFile.Pod)
	}
	agent.shown = nil
	s.expect("GET", "/pods", http.StatusOK, `{"kind":"PodList","apiVersion":"v1","metadata":{},"items":null}`+"\n")
	agent.away = errors.New("the agent ends")
	s.expect("GET", "/pods", http.StatusInternalServerError, "the agent ends")
	s.expect("GET", "/containerLogs/ns/web/app", http.StatusInternalServerError, "the agent ends")
}

// TestSlowClientOfLists checks that a client that does not read its list delays no other client.
func TestSlowClientOfLists(t *testing.T) {
	agent, m, _ := web(t)
	agent.shown[0].Pod.Annotations = map[string]string{"large": strings.Repeat("x", 64<<20)}
	s := serve(t, agent, m, func(_ *Settings, l *limits) { l.lists = 1 })
	slow := s.raw("GET /pods HTTP/1.1\r\nHost: node\r\nAuthorization: Bearer secret\r\n\r\n")
	if _, err := io.ReadFull(slow, make([]byte, 100)); err != nil {
		t.Fatal(err)
	}
	if code, text := s.do("GET", "/runningpods/", ""); code != http.StatusOK {
		t.Errorf("%d %s", code, text)
	}
}

// TestPanicOfAList checks that a panic while a list is made does not keep its slot.
func TestPanicOfAList(t *testing.T) {
	l := &lister{slots: make(chan struct{}, 1)}
	func() {
		defer func() { _ = recover() }()
		_ = l.serve(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), "GET", "/pods", nil),
			func(context.Context) ([]v1.Pod, error) { panic("list") })
	}()
	if len(l.slots) > 0 {
		t.Error("the slot is not free")
	}
}

// TestRunningPods checks the list of pods that run according to the runtime.
func TestRunningPods(t *testing.T) {
	old, young := pod("ns", "old", "u1", "api"), pod("ns", "young", "u2", "api")
	m := newRuntime(t)
	m.run(old, "a", "c1", "")
	m.run(old, "b", "c2", "")
	m.run(old, "ended", "c3", "")
	m.run(young, "c", "c4", "")
	m.exit("c3")
	s := serve(t, &pods{}, m)
	code, text := s.do("GET", "/runningpods/", "")
	var list v1.PodList
	if err := json.Unmarshal([]byte(text), &list); err != nil || code != http.StatusOK || len(list.Items) != 2 {
		t.Fatalf("%d %v %s", code, err, text)
	}
	first, second := list.Items[0], list.Items[1]
	if first.Name != "young" || first.UID != "u2" || first.Namespace != "ns" || second.Name != "old" || len(second.Spec.Containers) != 2 ||
		second.Spec.Containers[1].Name != "a" || second.Spec.Containers[1].Image != "image-of-a" {
		t.Errorf("%s", text)
	}
	m.fail(errors.New("the runtime is away"))
	s.expect("GET", "/runningpods", http.StatusInternalServerError, "the runtime is away")
}
