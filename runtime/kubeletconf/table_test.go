package kubeletconf

import (
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"

	"github.com/podctl/podctl/podspec/fieldpath"
	"github.com/podctl/podctl/podspec/fields"
)

// eachField calls visit for the fields of a configuration. It goes into structures that the table divides.
func eachField(rows table, t reflect.Type, path string, visit func(path string, t reflect.Type)) {
	for _, f := range fieldpath.Fields(fieldpath.Deref(t)) {
		at := fieldpath.Join(path, f.Name)
		if rows.isDivided(at) {
			eachField(rows, f.Type, at, visit)
		} else {
			visit(at, fieldpath.Deref(f.Type))
		}
	}
}

// formOf returns the form that a row for a type must have.
func formOf(path string, t reflect.Type) []Form {
	switch {
	case t == reflect.TypeFor[metav1.Duration]():
		return []Form{Duration}
	case t == reflect.TypeFor[[]v1.Taint]():
		return []Form{Taints}
	case t == reflect.TypeFor[[]string]():
		return []Form{List}
	case t == reflect.TypeFor[map[string]string](), t == reflect.TypeFor[map[string]bool]():
		if path == "evictionHard" || path == "evictionSoft" {
			return []Form{Thresholds}
		}
		return []Form{Pairs}
	case t.Kind() == reflect.String:
		return []Form{Text}
	case t.Kind() == reflect.Bool:
		return []Form{Boolean}
	case t.Kind() == reflect.Int32, t.Kind() == reflect.Int64, t.Kind() == reflect.Uint32:
		return []Form{Number}
	}
	return []Form{Tree, Text}
}

// TestEveryFieldHasARow compares the table with the Go type of the configuration.
func TestEveryFieldHasARow(t *testing.T) {
	rows, used, count := newTable(), map[string]bool{"apiVersion": true, "kind": true}, 0
	eachField(rows, reflect.TypeFor[kubeletconfig.KubeletConfiguration](), "", func(path string, of reflect.Type) {
		count++
		row := rows.paths[path]
		switch {
		case used[path]:
		case row == nil:
			t.Errorf("%s has no row", path)
		case !slices.Contains(formOf(path, of), row.Form):
			t.Errorf("%s has the form %d, and the type %s", path, row.Form, of)
		}
		used[path] = true
	})
	if count < 130 {
		t.Errorf("only %d fields were found", count)
	}
	for _, row := range All() {
		if row.Path != "" && !used[row.Path] {
			t.Errorf("%s is no field", row.Path)
		}
		switch {
		case row.Support == fields.Honoured && row.Setting == "":
			t.Errorf("%s: no setting of podctl", row.name())
		case row.Support != fields.Honoured && !strings.HasSuffix(row.Note, "."):
			t.Errorf("%s: no note", row.name())
		}
		for _, value := range row.Same {
			if text, err := row.Form.parse(value); err != nil || text != value {
				t.Errorf("%s: %q is not in the form of a value: %s %v", row.name(), value, text, err)
			}
		}
	}
}

// TestEveryFlagHasARow compares the table with the flags of a kubelet, and the fields that they set.
func TestEveryFlagHasARow(t *testing.T) {
	text, err := os.ReadFile("testdata/flags.txt")
	if err != nil {
		t.Fatal(err)
	}
	rows, old := newTable(), map[string]bool{}
	for _, row := range oldRows() {
		old[row.Flag] = true
	}
	known := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(line)
		if words[0] == "#" {
			continue
		}
		flag, kind, path := words[0], words[1], words[2]
		known[flag] = true
		row := rows.flags[flag]
		switch {
		case row == nil:
			t.Errorf("--%s has no row", flag)
		case path != "-" && row.Path != path:
			t.Errorf("--%s is in the row of %s, and sets %s", flag, row.Path, path)
		case (kind == "bool") != (row.Form == Boolean):
			t.Errorf("--%s has the form %d, and the type %s", flag, row.Form, kind)
		}
	}
	for flag := range rows.flags {
		if known[flag] == old[flag] {
			t.Errorf("--%s is no flag of a kubelet", flag)
		}
	}
	if len(known) < 140 {
		t.Errorf("only %d flags were found", len(known))
	}
}

// TestDurations checks that durations in the table are in the form of Go.
func TestDurations(t *testing.T) {
	if text, err := Duration.parse("300s"); err != nil || text != (5*time.Minute).String() {
		t.Errorf("%s %v", text, err)
	}
}
