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

// isPublic reports whether values of this kind may be repeated.
func isPublic(kind string) bool {
	switch kind {
	case "Pod", "ConfigMap", "PersistentVolumeClaim", "PersistentVolume", "Service",
		"Deployment", "ReplicaSet", "ReplicationController", "StatefulSet", "DaemonSet", "Job", "CronJob":
		return true
	}
	return false
}

// MayBeSecret reports whether the document may be a Secret, whose text must not be repeated in a problem. It is false
// only if the document declares another known kind.
func (d *Document) MayBeSecret() bool {
	kinds := d.kinds()
	return len(kinds) == 0 || slices.ContainsFunc(kinds, func(kind string) bool { return !isPublic(kind) })
}

// kinds returns the kinds that the document declares. There may be several until duplicate keys are refused.
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

// shown returns the part of a path that may be repeated. In a possible Secret, a piece of a value can be in the place
// of a key. Therefore it shows only parts that are names of fields or that are valid keys.
func (d *Document) shown(path string) string {
	if path == "" || !d.MayBeSecret() {
		return path
	}
	t, visible := reflect.TypeFor[v1.Secret](), ""
	if slices.Contains([]string{"List", "PodList"}, strings.Join(d.kinds(), " ")) {
		t = reflect.TypeFor[v1.List]()
	}
	for _, part := range fieldpath.Split(path) {
		next := fieldpath.Step(t, part)
		if next == nil || !isShowable(fieldpath.Deref(t), part) {
			return visible
		}
		if t = fieldpath.Deref(t); t.Kind() == reflect.Slice {
			visible += "[" + part + "]"
		} else {
			visible = fieldpath.Key(visible, part)
		}
		t = next
	}
	return visible
}

// isShowable reports whether a part of a path has a valid form for its type.
func isShowable(t reflect.Type, part string) bool {
	if t.Kind() == reflect.Slice {
		_, err := strconv.Atoi(part)
		return err == nil
	}
	return t.Kind() != reflect.Map ||
		len(validation.IsConfigMapKey(part)) == 0 ||
		len(validation.IsQualifiedName(part)) == 0
}

// shownKey returns the path of an invalid key. In a Secret it omits the key.
func (d *Document) shownKey(path, key string) string {
	if d.MayBeSecret() {
		return path
	}
	return fieldpath.Join(path, key)
}
