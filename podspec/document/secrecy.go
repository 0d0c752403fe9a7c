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

// isPublic reports whether the values of a kind of objects may be repeated.
func isPublic(kind string) bool {
	switch kind {
	case "Pod", "ConfigMap", "PersistentVolumeClaim", "PersistentVolume", "Service",
		"Deployment", "ReplicaSet", "ReplicationController", "StatefulSet", "DaemonSet", "Job", "CronJob":
		return true
	}
	return false
}

// MayBeSecret reports whether the document may be a Secret: its text is not repeated in a
// problem. Only a document that says it is something else may not.
func (d *Document) MayBeSecret() bool {
	kinds := d.kinds()
	return len(kinds) == 0 || slices.ContainsFunc(kinds, func(kind string) bool { return !isPublic(kind) })
}

// kinds are the kinds that the document gives: several until duplicate keys are refused.
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

// shown is as much of a path as may be repeated. In what may be a Secret, a piece of a value can
// stand in the place of a key: a part is shown if it is the name of a field, or could be that
// of a key.
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
		if next == nil || !isShowable(fieldpath.Deref(t), part) {
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

// isShowable reports whether a part of a path has the form of what it names.
func isShowable(t reflect.Type, part string) bool {
	if t.Kind() == reflect.Slice {
		_, err := strconv.Atoi(part)
		return err == nil
	}
	return t.Kind() != reflect.Map || len(validation.IsConfigMapKey(part)) == 0 || len(validation.IsQualifiedName(part)) == 0
}

// shownKey is the path of a key that is wrong itself; in a Secret it is left out.
func (d *Document) shownKey(path, key string) string {
	if d.MayBeSecret() {
		return path
	}
	return fieldpath.Join(path, key)
}
