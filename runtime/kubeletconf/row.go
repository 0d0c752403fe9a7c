package kubeletconf

import (
	"slices"
	"strings"

	"github.com/podctl/podctl/podspec/fields"
)

// Form is the type of a setting.
type Form int

// Forms of settings. Values of all forms have a text, which is that of a flag.
const (
	// Tree is a structure without a text of its own.
	Tree Form = iota
	Text
	Number
	Boolean
	Duration
	// List is a list of texts: a,b.
	List
	// Pairs are names with values: a=1,b=2.
	Pairs
	// Thresholds are signals with values: a<1,b<2.
	Thresholds
	// Taints have the form KEY=VALUE:EFFECT.
	Taints
)

// Row is what podctl does with a setting of a kubelet.
type Row struct {
	// Path is the field of KubeletConfiguration. It is empty for a setting that only a flag has. Flag is the flag of
	// the kubelet. It is empty for a setting that only a file has.
	Path, Flag string
	Form       Form
	Support    fields.Support
	// Setting is the flag of podctl that has the same effect.
	Setting string
	// Default is the value of a kubelet without the setting, if podctl's differs and matters for a takeover.
	Default string
	// Empty is the meaning of an empty list, if it differs from no setting.
	Empty string
	// Same are the values with which a kubelet does what podctl does without a setting.
	Same []string
	// Note is one sentence: what podctl does in place of the setting.
	Note string
	// Secret hides the value, because it can be a password.
	Secret bool
}

// name returns the name of the setting in messages.
func (r *Row) name() string {
	if r.Path != "" {
		return r.Path
	}
	return "--" + r.Flag
}

// isSame reports whether podctl does the same without a setting.
func (r *Row) isSame(value string) bool { return slices.Contains(r.Same, value) }

// namesFile reports whether a setting names files of the kubelet that are examined themselves. r may be nil.
func (r *Row) namesFile() bool { return r != nil && (r.Flag == configFlag || r.Flag == configDirFlag) }

// All returns the table. Tests compare it with the Go type and the flags of a kubelet.
func All() []Row {
	return slices.Concat(
		sourceRows(), serverRows(), clusterRows(), machineRows(), resourceRows(), flagRows(), oldRows())
}

// table finds rows.
type table struct{ paths, flags map[string]*Row }

func newTable() table {
	t := table{map[string]*Row{}, map[string]*Row{}}
	for _, r := range All() {
		if r.Path != "" {
			t.paths[r.Path] = &r
		}
		if r.Flag != "" {
			t.flags[r.Flag] = &r
		}
	}
	return t
}

// rowOf returns the row of a path in a configuration: its own, or that of a field above it.
func (t table) rowOf(path string) *Row {
	for {
		if r := t.paths[path]; r != nil {
			return r
		}
		i := strings.LastIndexByte(path, '.')
		if i < 0 {
			return nil
		}
		path = path[:i]
	}
}

// isDivided reports whether a path has rows below it.
func (t table) isDivided(path string) bool {
	for other := range t.paths {
		if strings.HasPrefix(other, path+".") {
			return true
		}
	}
	return false
}

// honoured returns a row for a setting with the same effect in podctl.
func honoured(path, flag string, form Form, setting string) Row {
	return Row{Path: path, Flag: flag, Form: form, Support: fields.Honoured, Setting: setting}
}

// without returns a row for a setting that podctl does not have.
func without(path, flag string, form Form, note string, same ...string) Row {
	return Row{Path: path, Flag: flag, Form: form, Support: fields.NoEffect, Note: note, Same: same}
}

// refused returns a row for a setting with which podctl cannot be used, except with some values.
func refused(path, flag string, form Form, note string, same ...string) Row {
	return Row{Path: path, Flag: flag, Form: form, Support: fields.Refused, Note: note, Same: same}
}

// with returns the row with values that need no setting of podctl.
func (r Row) with(same ...string) Row {
	r.Same = same
	return r
}

// otherwise returns the row with the value of a kubelet that does not have the setting.
func (r Row) otherwise(value string) Row {
	r.Default = value
	return r
}

// empty returns the row with the meaning of an empty list.
func (r Row) empty(meaning string) Row {
	r.Empty = meaning
	return r
}

// hidden returns the row with a value that is not shown.
func (r Row) hidden() Row {
	r.Secret = true
	return r
}
