package fieldpath

import (
	"strings"
	"testing"
)

func TestSplitPath(t *testing.T) {
	for path, want := range map[string]string{
		"spec.containers[0].image":                         "spec|containers|0|image",
		"spec.containers[0].resources.limits[cpu]":         "spec|containers|0|resources|limits|cpu",
		"metadata.annotations[a.b/c].x":                    "metadata|annotations|a.b/c|x",
		"metadata.labels":                                  "metadata|labels",
		"spec.initContainers[1].env[2].valueFrom.fieldRef": "spec|initContainers|1|env|2|valueFrom|fieldRef",
		"": "",
	} {
		if got := strings.Join(Split(path), "|"); got != want {
			t.Errorf("%s: %s", path, got)
		}
	}
}
