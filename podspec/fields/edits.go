package fields

import (
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/podspec/fieldpath"
)

// Edits determines the effect of edits on one running pod.
type Edits struct {
	table *Table
	pod   *v1.Pod
}

// NewEdits returns the Edits for the edited pod.
func NewEdits(pod *v1.Pod) Edits { return Edits{table: NewTable(), pod: pod} }

// Class returns the change class of a field. Entries of lists in its path are in brackets, by index or name. A field
// without effect changes nothing, regardless of its class.
func (e Edits) Class(path string) ChangeClass {
	f, ok := e.table.Classify(unbracketed(path))
	switch {
	case !ok:
		// A container as a whole: all other paths are in the table.
		return Replace
	case f.Support != Honoured, IsUnpublished(f, path):
		return NoChange
	case f.Path == SizeLimit && !e.inMemory(path):
		return Live
	}
	return f.Change
}

// Divides reports whether the fields below a path have more than one class. A list entry is always added or removed as
// a whole.
func (e Edits) Divides(path string) bool {
	return !strings.HasSuffix(path, "]") && e.table.isDivided(unbracketed(path))
}

func (e Edits) inMemory(path string) bool {
	vol := podspec.FindVolume(e.pod, fieldpath.Split(path)[2])
	return vol != nil && vol.EmptyDir != nil && vol.EmptyDir.Medium == v1.StorageMediumMemory
}

// unbracketed removes the list entries from a path.
func unbracketed(path string) string {
	var b strings.Builder
	for {
		before, rest, entry := strings.Cut(path, "[")
		b.WriteString(before)
		if !entry {
			return b.String()
		}
		_, path, _ = strings.Cut(rest, "]")
	}
}
