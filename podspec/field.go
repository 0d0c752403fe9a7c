package podspec

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
)

// Support says what podctl makes of a field.
type Support string

// The three things that can happen to a field. Nothing is ignored silently.
const (
	Honoured Support = "honoured"
	NoEffect Support = "no effect"
	Refused  Support = "refused"
)

// ChangeClass says what an edit of a field does to a pod that runs.
type ChangeClass string

// The classes of change.
const (
	// Replace replaces the containers that have the field.
	Replace ChangeClass = "replace"
	// NewSandbox recreates the sandbox, and with it all containers.
	NewSandbox ChangeClass = "sandbox"
	// InPlace changes the running container.
	InPlace ChangeClass = "in place"
	// Live takes effect without touching what runs: podctl reads the field anew
	// in each pass.
	Live ChangeClass = "live"
	// NextStart takes effect when a container starts next, and nothing is stopped for it.
	NextStart ChangeClass = "next start"
	// NewPod takes effect only once the pod has been deleted.
	NewPod ChangeClass = "new pod"
	// NoChange has no effect on what runs.
	NoChange ChangeClass = "none"
)

// Field classifies a field of v1.Pod and all below it, unless a longer path says
// otherwise. Paths are without indices; container stands for spec.containers,
// spec.initContainers and spec.ephemeralContainers, volume for spec.volumes.
type Field struct {
	Path    string
	Support Support
	Change  ChangeClass
	// Note is one sentence: why the field has no effect or is refused, or of what it is
	// honoured only.
	Note string
	// Needs says what the runtime or the node must offer.
	Needs string
}

// fieldTable finds rows by their path.
type fieldTable struct {
	rows map[string]Field
	// divided are the paths that have rows below them.
	divided map[string]bool
}

func newFieldTable() *fieldTable {
	fields := Fields()
	t := &fieldTable{rows: make(map[string]Field, len(fields)), divided: make(map[string]bool, len(fields))}
	for _, f := range fields {
		t.rows[f.Path] = f
		for i, r := range f.Path {
			if r == '.' {
				t.divided[f.Path[:i]] = true
			}
		}
	}
	return t
}

// classify returns the row with the longest path that path, with or without indices,
// begins with; false for a path that the table does not know.
func (t *fieldTable) classify(path string) (Field, bool) {
	for prefix := strings.Join(generalised(path), "."); ; {
		if f, ok := t.rows[prefix]; ok {
			return f, true
		}
		i := strings.LastIndexByte(prefix, '.')
		if i < 0 {
			return Field{}, false
		}
		prefix = prefix[:i]
	}
}

// isDivided tells that the table has rows below a path.
func (t *fieldTable) isDivided(path string) bool {
	return t.divided[strings.Join(generalised(path), ".")]
}

// generalised turns a path into the form of the table.
func generalised(path string) []string {
	parts := splitPath(path)
	if len(parts) < 2 || parts[0] != "spec" {
		return parts
	}
	switch parts[1] {
	case "containers", "initContainers", "ephemeralContainers":
		return append([]string{"container"}, withoutIndices(parts[2:])...)
	case "volumes":
		return append([]string{"volume"}, withoutIndices(parts[2:])...)
	}
	return append([]string{parts[0]}, withoutIndices(parts[1:])...)
}

func withoutIndices(parts []string) []string {
	var names []string
	for _, part := range parts {
		if part == "" || part[0] < '0' || part[0] > '9' {
			names = append(names, part)
		}
	}
	return names
}

// classifyWritten looks at every field that the user wrote: what is refused is a
// problem, what has no effect is noted, each once.
func classifyWritten(o *object) ([]Problem, []Note) {
	var written any
	if err := json.Unmarshal(o.report.json, &written); err != nil {
		return []Problem{o.report.at(ClassInvalid, "", err.Error())}, nil
	}
	c := &classifier{o: o, table: newFieldTable(), seen: map[string]bool{}}
	walkLeaves(written, "", c.visit)
	if os := o.pod.Spec.OS; os != nil && os.Name == "windows" {
		c.problems = append(c.problems, o.report.at(ClassUnsupported, "spec.os.name", "Windows pods cannot run here"))
	}
	slices.SortStableFunc(c.notes, func(a, b Note) int { return byPlace(a.problem(), b.problem()) })
	return c.problems, c.notes
}

type classifier struct {
	o        *object
	table    *fieldTable
	seen     map[string]bool
	problems []Problem
	notes    []Note
}

func (c *classifier) visit(path string, value any) {
	if text, ok := value.(string); ok && strings.HasPrefix(path, "spec.") && strings.Contains(text, "\x00") {
		c.problems = append(c.problems, c.o.report.at(ClassInvalid, path, "has a NUL byte, which Linux takes for the end of a path, an argument or a variable"))
	}
	f, ok := c.table.classify(path)
	if ok && f.Path == sizeLimit && !c.inMemory(path) {
		f.Support = NoEffect
	}
	if !ok || f.Support == Honoured || asksNothing(value, f) {
		return
	}
	at := reportedPath(path, f)
	if c.seen[at] || c.droppedToken(at) {
		return
	}
	c.seen[at] = true
	if f.Support == Refused {
		c.problems = append(c.problems, c.o.report.at(ClassUnsupported, at, f.Note))
		return
	}
	line, column := c.o.report.position(at)
	c.notes = append(c.notes, Note{Pod: c.o.key(), File: c.o.report.file, Line: line, Column: column, Path: at, Detail: f.Note})
}

// droppedToken tells that a path lies in a volume that was left out.
func (c *classifier) droppedToken(path string) bool {
	i := 0
	if _, err := fmt.Sscanf(path, "spec.volumes[%d]", &i); err != nil {
		return false
	}
	return c.o.tokens[c.o.report.Scalar("spec", "volumes", strconv.Itoa(i), "name")]
}

// reportedPath cuts a leaf's path to the field that the table names, and below a
// volume to the kind of volume.
func reportedPath(path string, f Field) string {
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

// tokenPrefix begins the name of the volume that a cluster's service account
// admission adds to every pod.
const tokenPrefix = "kube-api-access-"

// isInjectedToken tells what admission adds from what a user gave such a name.
func isInjectedToken(vol *v1.Volume) bool {
	return strings.HasPrefix(vol.Name, tokenPrefix) && vol.Projected != nil &&
		slices.ContainsFunc(vol.Projected.Sources, func(s v1.VolumeProjection) bool { return s.ServiceAccountToken != nil })
}

// injectedTokens are the names of the volumes that admission added. One that another
// volume has as well is none: whose the mounts are nobody could say.
func injectedTokens(volumes []v1.Volume) map[string]bool {
	tokens := map[string]bool{}
	for i := range volumes {
		if isInjectedToken(&volumes[i]) {
			tokens[volumes[i].Name] = true
		}
	}
	for i := range volumes {
		if !isInjectedToken(&volumes[i]) {
			delete(tokens, volumes[i].Name)
		}
	}
	return tokens
}

// dropInjectedToken leaves out the service account token that a cluster mounts
// into every pod: an exported pod loads, and nothing here could issue one.
func dropInjectedToken(o *object) []Note {
	o.tokens = injectedTokens(o.pod.Spec.Volumes)
	var notes []Note
	kept := o.pod.Spec.Volumes[:0]
	for i := range o.pod.Spec.Volumes {
		vol := o.pod.Spec.Volumes[i]
		if !o.tokens[vol.Name] {
			kept = append(kept, vol)
			continue
		}
		path := indexed("spec.volumes", i)
		line, column := o.report.position(path)
		notes = append(notes, Note{
			Pod: o.key(), File: o.report.file, Line: line, Column: column, Path: path,
			Detail: "the service account token that the cluster injected is left out, with its mounts",
		})
	}
	o.pod.Spec.Volumes = kept
	for _, ref := range Containers(o.pod) {
		ref.VolumeMounts = slices.DeleteFunc(ref.VolumeMounts, func(m v1.VolumeMount) bool { return o.tokens[m.Name] })
	}
	return notes
}
