package load

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestPin checks that only the names of images change, and that no Secret is printed.
func TestPin(t *testing.T) {
	before := `# Ours.

apiVersion: v1
kind: ConfigMap
metadata:
  name: c
data:
  image: a:1
---
apiVersion: v1
kind: Secret
metadata:
  name: s
stringData:
  key: hunter2
---
# The web server.
apiVersion: v1
kind: Pod
metadata:
  name: web
  annotations:
    image: &one a:1 # not an image
spec:
  initContainers:
    - name: init
      image: *one
  containers:
    - name: app
      image: "b:2" # the second
      env:
        - name: IMAGE
          value: b:2
  volumes:
    - name: v
      image:
        reference: c:3
---
apiVersion: v1
kind: List
items:
  - apiVersion: v1
    kind: Secret
    metadata:
      name: t
  - apiVersion: v1
    kind: Pod
    metadata:
      name: other
    spec:
      containers:
        - name: app
          image: a:1
`
	want := before
	for _, one := range [][2]string{
		{"---\napiVersion: v1\nkind: Secret\nmetadata:\n  name: s\nstringData:\n  key: hunter2\n", ""},
		{"  - apiVersion: v1\n    kind: Secret\n    metadata:\n      name: t\n", ""},
		{"image: *one", "image: a@sha256:1"},
		{`image: "b:2"`, `image: "b@sha256:2"`},
		{"reference: c:3", "reference: c@sha256:3"},
		{"          image: a:1", "          image: a@sha256:1"},
	} {
		want = strings.Replace(want, one[0], one[1], 1)
	}
	text, left, err := accepted(t, before).Pin(map[string]string{"a:1": "a@sha256:1", "b:2": "b@sha256:2", "c:3": "c@sha256:3"})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(text)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if strings.Join(left, ", ") != "Secret s, Secret t" {
		t.Errorf("omitted Secrets: %v", left)
	}
}

// TestPinMerge checks that an image that cannot be renamed is not shown as pinned.
func TestPinMerge(t *testing.T) {
	const head = "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec:\n"
	for name, spec := range map[string]string{
		"of a container": `  containers: [{<<: {image: "a:1"}, name: a}]`,
		"of a volume": `  volumes: [{name: v, image: {<<: {reference: "a:1"}}}]
  containers: [{name: a, image: "b:1"}]`,
	} {
		_, _, err := accepted(t, head+spec+"\n").Pin(map[string]string{"a:1": "a@sha256:1"})
		if err == nil || !strings.Contains(err.Error(), "pod default/web: the image a:1 comes from a YAML merge") {
			t.Errorf("image %s from a merge: %v", name, err)
		}
	}
}

// TestPinFollowsMerges checks that fields from a merge are pinned and omitted like others. A manifest that would be
// damaged without a Secret is not printed.
func TestPinFollowsMerges(t *testing.T) {
	pins := map[string]string{"a:1": "a@sha256:1"}
	text, left, err := accepted(t, `apiVersion: v1
<<: {kind: Secret, metadata: {name: s}}
stringData: {key: hunter2}
---
apiVersion: v1
kind: Pod
metadata: {name: web, annotations: {a: &i image}}
spec:
  <<: {containers: [{name: a, *i : "a:1"}]}
`).Pin(pins)
	if err != nil || strings.Contains(string(text), "hunter2") || strings.Contains(string(text), "a:1") || len(left) != 1 {
		t.Errorf("%v %v\n%s", err, left, text)
	}
	_, _, err = accepted(t, `apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Secret, metadata: {name: s, labels: &l {a: b}}}
- {apiVersion: v1, kind: Pod, metadata: {name: web, labels: *l}, spec: {containers: [{name: a, image: "a:1"}]}}
`).Pin(pins)
	if err == nil || !strings.Contains(err.Error(), "write out its aliases") {
		t.Errorf("alias of an omitted value: %v", err)
	}
}
