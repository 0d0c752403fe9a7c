package gotemplate

import (
	"strings"
	"testing"
	gotemplate "text/template"
)

func value() any {
	return map[string]any{
		"name": "web", "n": int64(3), "f": 1.5, "yes": true, "none": nil, "labels": map[string]any{"app": "w", "a-b": "x"},
		"items": []any{map[string]any{"name": "a"}, map[string]any{"name": "b", "ports": []any{int64(80), int64(443)}}},
	}
}

// TestAsTheLibrary: what a template makes is what text/template makes of it, or both refuse it.
func TestAsTheLibrary(t *testing.T) {
	for _, text := range []string{
		"", "plain", "{{.}}", "{{.name}}", "{{.absent}}", "{{.absent.deeper}}", "{{.none}}", "{{.name.deeper}}", "{{.n}} {{.f}} {{.yes}}",
		"{{range .items}}{{.name}},{{end}}", "{{range $i, $e := .items}}{{$i}}={{$e.name}} {{end}}", "{{range $e := .items}}{{$e.name}}{{$.name}}{{end}}",
		"{{range .absent}}x{{else}}empty{{end}}", "{{range $k, $v := .labels}}{{$k}}:{{$v}};{{end}}", "{{range .name}}{{end}}",
		"{{range .items}}{{if eq .name \"b\"}}{{break}}{{end}}{{.name}}{{end}}", "{{range .items}}{{if eq .name \"a\"}}{{continue}}{{end}}{{.name}}{{end}}",
		"{{if .yes}}a{{else}}b{{end}}", "{{if .absent}}a{{else if .n}}n{{end}}", "{{with .labels}}{{.app}}{{end}}", "{{with $x := .name}}{{$x}}{{.}}{{end}}", "{{with .absent}}a{{else}}none{{end}}",
		"{{$x := 1}}{{$x = 2}}{{$x}}", "{{$x := 1}}{{if true}}{{$x := 2}}{{end}}{{$x}}", "{{$x := 1}}{{if true}}{{$x = 2}}{{end}}{{$x}}",
		"{{index .labels \"a-b\"}}", "{{index .items 1 \"ports\" 0}}", "{{index .items 9}}", "{{(index .items 0).name}}", "{{len .items}} {{len .name}} {{len .labels}}", "{{len .n}}",
		"{{printf \"%s-%d-%v\" .name .n .f}}", "{{print .name .n 1}}", "{{println .name}}", "{{.name | printf \"%q\"}}", "{{.items | len | printf \"%03d\"}}",
		"{{and .yes .name}} {{and .absent .name}} {{or .absent .name}} {{or .none 0}} {{not .yes}}", "{{or .yes .name.deeper}}",
		"{{eq .name \"web\"}} {{eq .name \"a\" \"web\"}} {{ne .n 3}} {{lt .n 4}} {{le .n 3}} {{gt .n 3}} {{ge .n 3}} {{lt \"a\" \"b\"}}", "{{lt .name 3}}",
		"{{slice .name 1}} {{slice .name 1 2}}", "{{slice .name 9}}", "{{define \"t\"}}<{{.}}>{{end}}{{template \"t\" .name}}", "{{template \"gone\"}}", "{{define \"t\"}}{{template \"t\"}}{{end}}",
		"{{/* nothing */}}{{- \" x \" -}}  y", "{{.name 1}}", "{{nil}}", "{{\"a\"}}{{1}}{{1.5}}{{true}}", "{{.items}}", "{{len}}", "{{block \"b\" .name}}[{{.}}]{{end}}",
	} {
		var want strings.Builder
		library, wantErr := gotemplate.New("x").Parse(text)
		if wantErr == nil {
			wantErr = library.Execute(&want, value())
		}
		var got strings.Builder
		own, err := Parse(text)
		if err == nil {
			err = own.Execute(&got, value())
		}
		if (err != nil) != (wantErr != nil) || (err == nil && got.String() != want.String()) {
			t.Errorf("%s: %q %v, the library: %q %v", text, got.String(), err, want.String(), wantErr)
		}
	}
}

func TestAdded(t *testing.T) {
	for text, want := range map[string]string{
		`{{exists . "labels" "app"}} {{exists . "labels" "no"}} {{exists .items 1}} {{exists .items 2}} {{exists .name "x"}}`: "true false true false false",
		`{{"aGk=" | base64decode}}`: "hi",
	} {
		own, err := Parse(text)
		var got strings.Builder
		if err == nil {
			err = own.Execute(&got, value())
		}
		if err != nil || got.String() != want {
			t.Errorf("%s: %q %v", text, got.String(), err)
		}
	}
	for text, says := range map[string]string{
		"{{.name.x}}": "1:7: .name.x: web has no field x", `{{base64decode "%"}}`: "illegal base64",
		`{{define "t"}}{{template "t"}}{{end}}{{template "t"}}`: "without an end",
	} {
		own, err := Parse(text)
		if err == nil {
			err = own.Execute(&strings.Builder{}, value())
		}
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
