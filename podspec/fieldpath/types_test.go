package fieldpath

import (
	"reflect"
	"testing"

	v1 "k8s.io/api/core/v1"
)

// TestPathsAreBuilt checks that built paths have the form that Split reads.
func TestPathsAreBuilt(t *testing.T) {
	path := Join(Index(Join("", "spec"), 3), "x")
	if path != "spec[3].x" || Parent(path) != "spec[3]" || Parent("spec") != "" {
		t.Errorf("%s, its parent %s", path, Parent(path))
	}
	if got := Key("a", "b"); got != "a.b" {
		t.Errorf("a plain key: %s", got)
	}
	if got := Key("a", "b.c/d"); got != "a[b.c/d]" || len(Split(got)) != 2 {
		t.Errorf("a key with dots: %s", got)
	}
}

func TestNearest(t *testing.T) {
	for path, want := range map[string]string{
		"spec.contaners":                   "containers",
		"spec.containers[0].imagee":        "image",
		"spec.containers[0].Image":         "image",
		"spec.containers[0].ports[1].host": "",
		"spec.something":                   "",
		"spec.nothing.image":               "",
		"metadata.nam":                     "name",
		"":                                 "",
	} {
		if got := Nearest(&v1.Pod{}, path); got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
}

// TestStep follows pointers, lists, maps and embedded structs.
func TestStep(t *testing.T) {
	at := reflect.TypeFor[*v1.Pod]()
	for _, part := range []string{"spec", "ephemeralContainers", "0", "resources", "limits", "cpu"} {
		if at = Step(at, part); at == nil {
			t.Fatalf("%s leads nowhere", part)
		}
	}
	if at.Name() != "Quantity" {
		t.Errorf("the path leads to %s", at)
	}
	if got := Step(reflect.TypeFor[v1.Pod](), "nothing"); got != nil {
		t.Errorf("a field that is not there leads to %s", got)
	}
}
