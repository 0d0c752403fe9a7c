package fields

import (
	"encoding/json"
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/podspec/fieldpath"
)

// Use is a field that a pod sets.
type Use struct {
	// Path has the indices of list entries. It ends with the field of the row, or below a volume with its kind.
	Path string
	// Note is why podctl refuses the field, or why the field has no effect. It is one sentence.
	Note string
}

// InCluster returns the fields that a pod of the API server sets and that podctl refuses, and those that have no effect
// on this node. Both are in the order of their paths. A volume or a projected source without a kind has one that this
// version does not know, and is refused: the API server never sends an empty one.
func InCluster(pod *v1.Pod) (refused, ineffective []Use) {
	u := &uses{pod: pod, table: NewTable(), seen: map[string]bool{}}
	text, err := json.Marshal(pod)
	if err != nil {
		return nil, nil
	}
	var tree any
	if err := json.Unmarshal(text, &tree); err != nil {
		return nil, nil
	}
	u.unknownVolumes()
	fieldpath.EachLeaf(tree, "", u.visit)
	return u.refused, u.ineffective
}

// uses collects the fields of a pod that are not honoured.
type uses struct {
	pod                  *v1.Pod
	table                *Table
	seen                 map[string]bool
	refused, ineffective []Use
}

func (u *uses) visit(path string, value any) {
	f, ok := u.table.Classify(path)
	if f = f.inCluster(); !ok || f.Support == Honoured || f.IsMeaningless(path, value) {
		return
	}
	at := f.ReportedPath(path)
	if u.seen[at] {
		return
	}
	u.seen[at] = true
	if f.Support == Refused {
		u.refused = append(u.refused, Use{at, f.Note})
	} else {
		u.ineffective = append(u.ineffective, Use{at, f.Note})
	}
}

// unknownVolumes refuses volumes and projected sources without a kind.
func (u *uses) unknownVolumes() {
	const unknown = "This kind of volume is not known to this version of podctl."
	for i := range u.pod.Spec.Volumes {
		vol, at := &u.pod.Spec.Volumes[i], fieldpath.Index("spec.volumes", i)
		if vol.VolumeSource == (v1.VolumeSource{}) {
			u.refused = append(u.refused, Use{at, unknown})
		}
		if vol.Projected == nil {
			continue
		}
		for j, source := range vol.Projected.Sources {
			if source == (v1.VolumeProjection{}) {
				u.refused = append(u.refused, Use{at + ".projected." + fieldpath.Index("sources", j), unknown})
			}
		}
	}
}

// inCluster returns the row with its values for pods of the API server.
func (f Field) inCluster() Field {
	if f.Cluster != "" {
		f.Support, f.Note = f.Cluster, f.ClusterNote
	}
	return f
}

// ReportedPath truncates a leaf's path to the field of the row, or below a volume to the kind of volume.
func (f Field) ReportedPath(path string) string {
	want := len(strings.Split(f.Path, "."))
	if f.Path == "volume" || f.Path == "metadata" {
		want++
	}
	if strings.HasPrefix(f.Path, "container") || strings.HasPrefix(f.Path, "volume") {
		want++
	}
	names := 0
	for i, r := range path {
		if r == '.' {
			if names++; names == want {
				path = path[:i]
				break
			}
		}
	}
	if strings.HasSuffix(path, "]") {
		path = path[:strings.LastIndexByte(path, '[')]
	}
	return path
}

// IsMeaningless reports whether a value is an empty list or map that has no meaning. In a volume even an empty map has
// one: the kind of volume.
func (f Field) IsMeaningless(path string, value any) bool {
	switch value.(type) {
	case map[string]any, []any:
		return path == "spec.volumes" || !strings.HasPrefix(f.Path, "volume")
	}
	return false
}
