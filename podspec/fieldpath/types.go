package fieldpath

import (
	"reflect"
	"strings"
)

// Nearest returns the field of the same struct with the most similar name, as a suggestion, or an empty string if none
// is similar.
func Nearest(into any, path string) string {
	parts := Split(path)
	if len(parts) == 0 {
		return ""
	}
	t := reflect.TypeOf(into)
	for _, part := range parts[:len(parts)-1] {
		if t = Step(t, part); t == nil {
			return ""
		}
	}
	wrong := parts[len(parts)-1]
	best, distance := "", len(wrong)/3+1
	for _, name := range fieldNames(Deref(t)) {
		if d := editDistance(strings.ToLower(wrong), strings.ToLower(name)); d < distance {
			best, distance = name, d
		}
	}
	return best
}

// Deref returns the type that pointers point to.
func Deref(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t
}

// Step returns the type of a part of t, or nil if there is no such part.
func Step(t reflect.Type, part string) reflect.Type {
	t = Deref(t)
	if kind := t.Kind(); kind == reflect.Slice || kind == reflect.Map {
		return t.Elem()
	}
	for _, f := range Fields(t) {
		if f.Name == part {
			return f.Type
		}
	}
	return nil
}

// Field is a field of a struct with its JSON name.
type Field struct {
	Name string
	Type reflect.Type
}

// Fields returns the fields of a struct with their JSON names, including those of embedded structs. Other types have
// none.
func Fields(t reflect.Type) []Field {
	if t.Kind() != reflect.Struct {
		return nil
	}
	var fields []Field
	for f := range t.Fields() {
		name, rest, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && (name == "" || strings.Contains(rest, "inline")):
			fields = append(fields, Fields(Deref(f.Type))...)
		case name != "" && name != "-":
			fields = append(fields, Field{Name: name, Type: f.Type})
		}
	}
	return fields
}

func fieldNames(t reflect.Type) []string {
	var names []string
	for _, f := range Fields(t) {
		names = append(names, f.Name)
	}
	return names
}

// editDistance counts the letters to add, remove or change to turn a into b.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
