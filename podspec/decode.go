package podspec

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	yamlv3 "go.yaml.in/yaml/v3"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	kjson "sigs.k8s.io/json"
)

// typeMeta is what tells documents apart.
type typeMeta struct {
	APIVersion string            `json:"apiVersion"`
	Kind       string            `json:"kind"`
	Items      []json.RawMessage `json:"items"`
}

// decodeInto decodes a document strictly: every field must exist, be given once
// and have the right type. All unknown fields are reported at once.
func (d *document) decodeInto(into any) []Problem {
	strict, err := kjson.UnmarshalStrict(d.json, into, kjson.DisallowUnknownFields, kjson.DisallowDuplicateFields)
	var problems []Problem
	for _, one := range strict {
		problems = append(problems, d.strictProblem(one, into))
	}
	if err != nil {
		problems = append(problems, d.typeProblem(err))
	}
	return first(problems)
}

// strictProblem puts an unknown or repeated field at its place.
func (d *document) strictProblem(err error, into any) Problem {
	path := ""
	if field := kjson.FieldError(nil); errors.As(err, &field) {
		path = field.FieldPath()
	}
	if strings.HasPrefix(err.Error(), "duplicate field") {
		return d.at(ClassInvalid, path, "is given twice")
	}
	detail := "unknown field"
	if near := nearestField(into, path); near != "" {
		detail += fmt.Sprintf("; did you mean %s?", near)
	}
	return d.at(ClassInvalid, path, detail)
}

// typeProblem puts a value of the wrong type at its place.
func (d *document) typeProblem(err error) Problem {
	if wrong := (*json.UnmarshalTypeError)(nil); errors.As(err, &wrong) {
		path := d.pathAt(wrong.Offset)
		return d.at(ClassInvalid, path, fmt.Sprintf("is a %s, %s is expected%s", wrong.Value, typeName(wrong.Type), quoteHint(wrong)))
	}
	if path, value, ok := d.badQuantity(); ok {
		return d.at(ClassInvalid, path, fmt.Sprintf("%q is not a quantity; write for example 500m, 2 or 64Mi", value))
	}
	return d.at(ClassInvalid, "", strings.TrimPrefix(err.Error(), "json: "))
}

// quoteHint helps where YAML read a text as something else: no, 1.0, 0123.
func quoteHint(wrong *json.UnmarshalTypeError) string {
	if wrong.Type.Kind() == reflect.String && (wrong.Value == "bool" || strings.HasPrefix(wrong.Value, "number")) {
		return "; put it in quotes"
	}
	return ""
}

// typeName says what a Go type is called in YAML.
func typeName(t reflect.Type) string {
	switch kind := t.Kind(); {
	case kind == reflect.String:
		return "a string"
	case kind == reflect.Bool:
		return "true or false"
	case kind >= reflect.Int && kind <= reflect.Uint64:
		return "a whole number"
	case kind == reflect.Slice:
		return "a list"
	case kind == reflect.Map:
		return "a map"
	}
	return "a map of fields (" + t.Name() + ")"
}

// pathAt finds the field whose value ends at an offset of the document's JSON.
func (d *document) pathAt(offset int64) string {
	w := &offsetWalker{decoder: json.NewDecoder(strings.NewReader(string(d.json))), offset: offset}
	w.value("")
	return w.found
}

// offsetWalker reads JSON token by token and keeps the path of the last value
// that begins before an offset.
type offsetWalker struct {
	decoder *json.Decoder
	offset  int64
	found   string
}

// value reads one value at a path; false when the reading ends.
func (w *offsetWalker) value(path string) bool {
	if w.decoder.InputOffset() >= w.offset {
		return false
	}
	w.found = path
	token, err := w.decoder.Token()
	if err != nil {
		return false
	}
	switch token {
	case json.Delim('{'):
		return w.object(path)
	case json.Delim('['):
		return w.list(path)
	}
	return true
}

func (w *offsetWalker) object(path string) bool {
	for w.decoder.More() {
		key, err := w.decoder.Token()
		name, ok := key.(string)
		if err != nil || !ok || !w.value(joinPath(path, name)) {
			return false
		}
	}
	_, err := w.decoder.Token()
	return err == nil
}

func (w *offsetWalker) list(path string) bool {
	for i := 0; w.decoder.More(); i++ {
		if !w.value(indexed(path, i)) {
			return false
		}
	}
	_, err := w.decoder.Token()
	return err == nil
}

// badQuantity finds the first value that stands where a quantity belongs and is
// none; the decoder does not say where that was.
func (d *document) badQuantity() (path, value string, found bool) {
	walkLeaves(d.root, "", func(at string, n *yamlv3.Node) {
		if found || !holdsQuantity(at) {
			return
		}
		if _, err := resource.ParseQuantity(n.Value); err != nil {
			path, value, found = at, n.Value, true
		}
	})
	return path, value, found
}

func holdsQuantity(path string) bool {
	parts := splitPath(path)
	for i, part := range parts {
		switch part {
		case "limits", "requests", "overhead", "capacity":
			return i == len(parts)-2
		case "sizeLimit", "divisor":
			return i == len(parts)-1
		}
	}
	return false
}

// decoded is one object of a manifest and the document it came from.
type decoded struct {
	written   identity
	doc       *document
	pod       *v1.Pod
	configMap *v1.ConfigMap
	secret    *v1.Secret
	claim     *v1.PersistentVolumeClaim
	// tokens are the names of a pod's volumes that were left out.
	tokens map[string]bool
}
