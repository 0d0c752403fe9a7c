package fields

import (
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/podspec/fieldpath"
)

// Edits says what an edit of a field does to one pod that runs.
type Edits struct {
	table *Table
	pod   *v1.Pod
}

// NewEdits is about a pod as it was edited.
func NewEdits(pod *v1.Pod) Edits { return Edits{table: NewTable(), pod: pod} }

// Class is the class of a field, by its path with the entries of lists in brackets, by
// index or by name. A field that has no effect here changes nothing, whatever its class.
func (e Edits) Class(path string) ChangeClass {
	f, ok := e.table.Classify(unbracketed(path))
	switch {
	case !ok:
		// A container as a whole: all else is in the table.
		return Replace
	case f.Support != Honoured, f.Path == SizeLimit && !e.inMemory(path), IsUnpublished(f, path):
		return NoChange
	}
	return f.Change
}

// Divides reports whether the fields below a path are of more than one class. An entry of a
// list comes and goes as a whole.
func (e Edits) Divides(path string) bool {
	return !strings.HasSuffix(path, "]") && e.table.isDivided(unbracketed(path))
}

func (e Edits) inMemory(path string) bool {
	vol, _ := podspec.FindVolume(e.pod, fieldpath.Split(path)[2])
	return vol != nil && vol.EmptyDir != nil && vol.EmptyDir.Medium == v1.StorageMediumMemory
}

// unbracketed leaves out which entries of lists a path goes through.
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
