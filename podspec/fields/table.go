package fields

import (
	"strings"
	"sync"

	"github.com/podctl/podctl/podspec/fieldpath"
)

// Support is how podctl handles a field.
type Support string

// Ways to handle a field. No field is ignored silently.
const (
	Honoured Support = "honoured"
	NoEffect Support = "no effect"
	Refused  Support = "refused"
)

// ChangeClass is the effect of an edit of a field on a running pod.
type ChangeClass string

// Classes of change.
const (
	// Replace replaces the containers that have the field.
	Replace ChangeClass = "replace"
	// NewSandbox recreates the sandbox, and with it all containers.
	NewSandbox ChangeClass = "sandbox"
	// InPlace changes the running container.
	InPlace ChangeClass = "in place"
	// Live takes effect without a change to running containers: podctl reads the field in each pass.
	Live ChangeClass = "live"
	// NextStart takes effect when a container starts the next time. No container is stopped for it.
	NextStart ChangeClass = "next start"
	// NewPod takes effect only after the pod has been deleted.
	NewPod ChangeClass = "new pod"
	// NoChange has no effect on running containers.
	NoChange ChangeClass = "none"
)

// Field classifies a field of v1.Pod and everything below it, unless there is a row with a longer path. Paths have no
// indices. container stands for spec.containers, spec.initContainers and spec.ephemeralContainers; volume stands for
// spec.volumes.
type Field struct {
	Path    string
	Support Support
	Change  ChangeClass
	// Note is one sentence with the reason why the field has no effect or is refused, or with the limits of its
	// support.
	Note string
	// Needs lists the requirements on the runtime or the node.
	Needs string
	// Cluster and ClusterNote replace Support and Note for pods of the API server. Cluster is empty if both are the
	// same for all pods.
	Cluster     Support
	ClusterNote string
}

// Table finds rows by path.
type Table struct {
	rows map[string]Field
	// divided holds the paths that have rows below them.
	divided map[string]bool
}

// NewTable returns the table of All. It does not change, and all callers share it.
func NewTable() *Table {
	shared.once.Do(func() { shared.table = TableOf(All()) })
	return shared.table
}

// shared is the table of All, once it was needed. Its zero value costs nothing when the program starts.
var shared struct { //nolint:gochecknoglobals // it does not change
	once  sync.Once
	table *Table
}

// TableOf returns a table of rows.
func TableOf(fields []Field) *Table {
	t := &Table{rows: make(map[string]Field, len(fields)), divided: make(map[string]bool, len(fields))}
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

// Classify returns the row with the longest prefix of path, which may have indices. It returns false if there is none.
func (t *Table) Classify(path string) (Field, bool) {
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

// isDivided reports whether the table has rows below a path.
func (t *Table) isDivided(path string) bool {
	return t.divided[strings.Join(generalised(path), ".")]
}

// generalised converts a path to the form of the table.
func generalised(path string) []string {
	parts := fieldpath.Split(path)
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

// Fields for which some values have no effect.
const (
	// DNSPolicy is supported except for the DNS of a cluster.
	DNSPolicy = "spec.dnsPolicy"
	// SizeLimit is the size of a volume in memory. On disk it is a limit that can change.
	SizeLimit = "volume.emptyDir.sizeLimit"
	// HostPort is supported only for regular containers (kubelet: generatePodSandboxConfig).
	HostPort = "container.ports.hostPort"
	// HostIP is supported where HostPort is.
	HostIP = "container.ports.hostIP"
)

// IsUnpublished reports whether a field belongs to a port that is not published on the node.
func IsUnpublished(f Field, path string) bool {
	return (f.Path == HostPort || f.Path == HostIP) && !strings.HasPrefix(path, "spec.containers")
}

// Keep removes from a tree every field of another class. It judges a field without rows below it as a whole.
func (t *Table) Keep(tree map[string]any, path string, class ChangeClass) {
	for key, value := range tree {
		at := fieldpath.Join(path, key)
		sub, isTree := value.(map[string]any)
		switch f, ok := t.Classify(at); {
		case isTree && t.isDivided(at):
			t.Keep(sub, at, class)
		case !ok || f.Change != class:
			delete(tree, key)
		}
	}
}
