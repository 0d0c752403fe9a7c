package load

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	kjson "sigs.k8s.io/json"

	"github.com/podctl/podctl/podspec/fieldpath"
	"github.com/podctl/podctl/podspec/quote"
)

// dropMistyped returns the document's JSON without the values that cannot be decoded into a type, and reports each of
// them. The decoder reports only the first, often without its position, and no unknown fields.
func (r *report) dropMistyped(t reflect.Type) []byte {
	decoder := json.NewDecoder(bytes.NewReader(r.JSON))
	decoder.UseNumber()
	var root any
	if decoder.Decode(&root) != nil || !r.fits("", root, t) {
		return nil
	}
	left, err := json.Marshal(root)
	if err != nil {
		return nil
	}
	return left
}

// fits reports whether a value can be decoded into a type. It removes parts that cannot.
func (r *report) fits(path string, value any, t reflect.Type) bool {
	t = fieldpath.Deref(t)
	switch value := value.(type) {
	case nil:
		return true
	case map[string]any:
		if t.Kind() == reflect.Struct && !decodesItself(t) {
			r.dropFields(path, value, t)
			return true
		}
		if t.Kind() == reflect.Map {
			r.dropKeys(path, value, t.Elem())
			return true
		}
	case []any:
		if t.Kind() == reflect.Slice && !decodesItself(t) {
			r.dropItems(path, value, t.Elem())
			return true
		}
	}
	text, err := json.Marshal(value)
	if err == nil {
		err = kjson.UnmarshalCaseSensitivePreserveInts(text, reflect.New(t).Interface())
	}
	if err != nil {
		r.refuseValue(path, r.mistyped(value, t))
	}
	return err == nil
}

func decodesItself(t reflect.Type) bool {
	return reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]())
}

func (r *report) dropFields(path string, fields map[string]any, t reflect.Type) {
	for _, f := range fieldpath.Fields(t) {
		if value, ok := fields[f.Name]; ok && !r.fits(fieldpath.Join(path, f.Name), value, f.Type) {
			delete(fields, f.Name)
		}
	}
}

func (r *report) dropKeys(path string, values map[string]any, t reflect.Type) {
	for _, key := range slices.Sorted(maps.Keys(values)) {
		if !r.fits(fieldpath.Key(path, key), values[key], t) {
			delete(values, key)
		}
	}
}

// dropItems sets mistyped items to nil, so that later items keep their indices.
func (r *report) dropItems(path string, items []any, t reflect.Type) {
	for i, item := range items {
		if !r.fits(fieldpath.Index(path, i), item, t) {
			items[i] = nil
		}
	}
}

// mistyped describes a value and the expected type. It does not repeat values of a Secret.
func (r *report) mistyped(value any, t reflect.Type) string {
	_, isText := value.(string)
	_, isBool := value.(bool)
	_, isNumber := value.(json.Number)
	isList := t.Kind() == reflect.Slice
	output, kind := quote.Value(fmt.Sprint(value)), kindOf(value)
	if isNumber {
		// It may be a number out of range.
		kind += " " + quote.OneLine(fmt.Sprint(value))
	}
	if r.MayBeSecret() {
		output, kind = "the value", kindOf(value)
	}
	switch {
	case t == reflect.TypeFor[resource.Quantity]() && (isText || isBool || isNumber):
		return output + " is not a quantity; write, for example, 500m, 2 or 64Mi"
	case t == reflect.TypeFor[metav1.Time]() && isText:
		return output + " is not a time; write, for example, 2026-01-31T12:00:00Z"
	case isList && t.Elem().Kind() == reflect.Uint8 && isText:
		return "is not base64; put plain text in stringData of a Secret or data of a ConfigMap"
	}
	hint := ""
	if t.Kind() == reflect.String && (isBool || isNumber) {
		hint = "; put it in quotes"
	}
	if isText && (t.Kind() == reflect.Map || t.Kind() == reflect.Struct && !decodesItself(t)) {
		hint = "; write a field as its name, a colon, a space and its value"
	}
	return fmt.Sprintf("is a %s, %s is expected%s", kind, typeName(t), hint)
}

// kindOf returns YAML's name for the type of a value.
func kindOf(value any) string {
	switch value.(type) {
	case string:
		return "string"
	case bool:
		return "bool"
	case json.Number:
		return "number"
	case []any:
		return "list"
	}
	return "map"
}

// typeName returns YAML's name for a Go type.
func typeName(t reflect.Type) string {
	switch kind := t.Kind(); {
	case t == reflect.TypeFor[resource.Quantity]():
		return "a quantity"
	case t == reflect.TypeFor[metav1.Time]():
		return "a time"
	case t == reflect.TypeFor[intstr.IntOrString]():
		return "a whole number or a string"
	case kind == reflect.String:
		return "a string"
	case kind == reflect.Bool:
		return "true or false"
	case kind >= reflect.Int && kind <= reflect.Uint64:
		return fmt.Sprintf("a whole number of at most %d bits", t.Bits())
	case kind == reflect.Slice && t.Elem().Kind() == reflect.Uint8:
		return "base64"
	case kind == reflect.Slice:
		return "a list"
	case kind == reflect.Map:
		return "a map"
	}
	return "a map of fields (" + t.Name() + ")"
}
