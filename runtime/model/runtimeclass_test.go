package model

import (
	"testing"

	v1 "k8s.io/api/core/v1"
)

// TestRuntimeClasses checks that a pod gets the handler of its own class, also from a copy that has only that class and
// from the file, and that unread classes differ from a missing one.
func TestRuntimeClasses(t *testing.T) {
	all := RuntimeClasses{"fast": "kata", "slow": "gvisor", "default": ""}
	for name, c := range map[string]struct {
		classes       RuntimeClasses
		class         *string
		handler, text string
	}{
		"a class":              {all, new("fast"), "kata", ""},
		"the default handler":  {all, new("default"), "", ""},
		"no class":             {nil, nil, "", ""},
		"an empty name":        {nil, new(""), "", ""},
		"a missing class":      {all, new("x"), "", `runtimeclass.node.k8s.io "x" not found`},
		"no classes at all":    {RuntimeClasses{}, new("x"), "", `runtimeclass.node.k8s.io "x" not found`},
		"classes never read":   {nil, new("x"), "", "failed to lookup RuntimeClass x: RuntimeClasses have not yet been read at least once"},
		"a hostile class name": {all, new("x\n\x1b"), "", `runtimeclass.node.k8s.io "x\n\x1b" not found`},
	} {
		pod := &v1.Pod{Spec: v1.PodSpec{RuntimeClassName: c.class}}
		text, err := c.classes.Encode()
		if err != nil {
			t.Fatal(err)
		}
		for place, classes := range map[string]RuntimeClasses{
			"all": c.classes, "own": c.classes.Of(pod), "stored": DecodeRuntimeClasses(text),
		} {
			handler, err := classes.Handler(pod)
			if handler != c.handler || (err != nil) != (c.text != "") || (err != nil && KubeletText(err) != c.text) {
				t.Errorf("%s, %s: %q, %v", name, place, handler, err)
			}
		}
	}
	if own := all.Of(&v1.Pod{Spec: v1.PodSpec{RuntimeClassName: new("fast")}}); len(own) != 1 {
		t.Errorf("a pod has the classes %v", own)
	}
	if DecodeRuntimeClasses([]byte("{")) != nil || DecodeRuntimeClasses(nil) != nil {
		t.Error("a damaged file has classes")
	}
}
