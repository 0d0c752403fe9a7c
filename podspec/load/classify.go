package load

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/podspec/document"
	"github.com/podctl/podctl/podspec/fieldpath"
	"github.com/podctl/podctl/podspec/fields"
)

// classify checks every field that the user wrote, except those of a pod template. It reports a refused field as a
// problem. It returns a note for a field without effect, unless it has a problem. Each field is reported once.
func (o *object) classify(table *fields.Table) []document.Note {
	var written any
	if json.Unmarshal(o.report.JSON, &written) != nil {
		return nil // The fault is already reported.
	}
	// The decoded values are visited, not the tree of positions: the decoder has expanded merges and aliases there.
	c := &classifier{o: o, table: table, seen: map[string]bool{}, about: o.String()}
	if o.pod == nil {
		fieldpath.EachLeaf(written, "", c.visit)
		return c.notes
	}
	c.about = o.key()
	fieldpath.EachLeaf(written, "", c.visit)
	if os := o.pod.Spec.OS; os != nil && os.Name == "windows" {
		o.report.refuse(document.ClassUnsupported, "spec.os.name", "Windows pods cannot run here")
	}
	slices.SortStableFunc(c.notes, func(a, b document.Note) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return c.notes
}

// classifier visits the fields of one object.
type classifier struct {
	o     *object
	table *fields.Table
	seen  map[string]bool
	// about is the object that the notes are about.
	about string
	notes []document.Note
}

func (c *classifier) visit(path string, value any) {
	f, ok := c.table.Classify(path)
	if c.o.pod != nil {
		f = c.ofPod(path, value, f)
	}
	selectsNodes := c.o.ofDaemonSet && fields.ChoosesNodes(path)
	if !ok || f.Support == fields.Honoured || f.IsMeaningless(path, value) || selectsNodes {
		return
	}
	at := f.ReportedPath(path)
	if c.seen[at] || c.droppedToken(at) {
		return
	}
	c.seen[at] = true
	if f.Support == fields.Refused {
		c.o.report.refuse(document.ClassUnsupported, at, f.Note)
	} else if !c.o.report.isUndecoded(at) && !c.o.report.hasProblem(at) {
		c.notes = append(c.notes, c.o.report.Note(c.about, at, f.Note))
	}
}

// ofPod adapts the row of a pod's field to the field's value.
func (c *classifier) ofPod(path string, value any, f fields.Field) fields.Field {
	if text, ok := value.(string); ok && strings.HasPrefix(path, "spec.") && strings.Contains(text, "\x00") {
		c.o.report.refuse(document.ClassInvalid, path,
			"has a NUL byte, which Linux treats as the end of a path, an argument or a variable")
	}
	if c.hasNoEffect(path, value, f) {
		f.Support = fields.NoEffect
	}
	if isPodmans(path) {
		f.Support = fields.NoEffect
		f.Note = "Only podman reads annotations of podman. " +
			"Set the same options, such as SELinux labels, with fields."
	}
	return f
}

// isPodmans reports whether a path is an annotation that podman generate kube writes for podman kube play.
func isPodmans(path string) bool {
	name, ok := strings.CutPrefix(path, "metadata.annotations.")
	return ok && (name == "bind-mount-options" || strings.HasPrefix(name, "io.podman.annotations."))
}

// droppedToken reports whether a path belongs to a volume that dropInjectedToken has removed.
func (c *classifier) droppedToken(path string) bool {
	i := 0
	if _, err := fmt.Sscanf(path, "spec.volumes[%d]", &i); err != nil {
		return false
	}
	return c.o.tokens[c.o.report.Scalar("spec", "volumes", strconv.Itoa(i), "name")]
}

// hasNoEffect reports whether a supported field has no effect with this value.
func (c *classifier) hasNoEffect(path string, value any, f fields.Field) bool {
	switch f.Path {
	case fields.HostPort, fields.HostIP:
		return fields.IsUnpublished(f, path) && !c.o.pod.Spec.HostNetwork
	case fields.DNSPolicy:
		return value == string(v1.DNSClusterFirst) || value == string(v1.DNSClusterFirstWithHostNet)
	}
	return false
}
