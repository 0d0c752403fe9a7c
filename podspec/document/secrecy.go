package document

import (
	"reflect"
	"slices"
	"strconv"
	"strings"

	yamlv3 "go.yaml.in/yaml/v3"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/podctl/podctl/podspec/fieldpath"
)

// mayBeSecret reports whether the document may be a Secret: what stands in it is not
// repeated in a problem. Only a document that says to be something else is not.
func (d *Document) MayBeSecret() bool {
	kinds := d.kinds()
	return len(kinds) == 0 || slices.ContainsFunc(kinds, func(kind string) bool {
		return !slices.Contains([]string{"Pod", "ConfigMap", "PersistentVolumeClaim"}, kind)
	})
}

// kinds are the kinds that the document says to be; several while nobody has looked yet
// whether it gives a key twice.
func (d *Document) kinds() []string {
	if d.Kind != "" {
		return []string{d.Kind}
	}
	if d.root == nil || d.root.Kind != yamlv3.MappingNode {
		return nil
	}
	var kinds []string
	for i := 0; i+1 < len(d.root.Content); i += 2 {
		if keyName(d.root.Content[i]) == "kind" {
			kinds = append(kinds, resolved(d.root.Content[i+1]).Value)
		}
	}
	return kinds
}

// shown is as much of a path as may be told. In what may be a Secret, what stands in the
// place of a key can be a piece of a value: a name is told if it is a field's, or could be a
// key's.
func (d *Document) shown(path string) string {
	if path == "" || !d.MayBeSecret() {
		return path
	}
	t, told := reflect.TypeFor[v1.Secret](), ""
	if slices.Contains([]string{"List", "PodList"}, strings.Join(d.kinds(), " ")) {
		t = reflect.TypeFor[v1.List]()
	}
	for _, part := range fieldpath.Split(path) {
		next := fieldpath.Step(t, part)
		if next == nil || !isTellable(fieldpath.Deref(t), part) {
			return told
		}
		if t = fieldpath.Deref(t); t.Kind() == reflect.Slice {
			told += "[" + part + "]"
		} else {
			told = fieldpath.Key(told, part)
		}
		t = next
	}
	return told
}

// isTellable reports whether a part of a path has the form of what it names.
func isTellable(t reflect.Type, part string) bool {
	if t.Kind() == reflect.Slice {
		_, err := strconv.Atoi(part)
		return err == nil
	}
	return t.Kind() != reflect.Map || len(validation.IsConfigMapKey(part)) == 0 || len(validation.IsQualifiedName(part)) == 0
}

// shownKey is the path of a key that is wrong itself, which in a Secret is not told.
func (d *Document) shownKey(path, key string) string {
	if d.MayBeSecret() {
		return path
	}
	return fieldpath.Join(path, key)
}
