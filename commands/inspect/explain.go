package inspect

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/spf13/cobra"
	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/commands/completion"
	"github.com/podctl/podctl/commands/exit"
	"github.com/podctl/podctl/commands/flags"
	"github.com/podctl/podctl/commands/selection"
	"github.com/podctl/podctl/commands/session"
	"github.com/podctl/podctl/commands/table"
	"github.com/podctl/podctl/commands/terminal"
	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/podspec/fieldpath"
	"github.com/podctl/podctl/podspec/fields"
)

// NewExplain returns the command `podctl explain`.
func NewExplain(sess *session.Session) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "explain KIND[.FIELD...]",
		Short: "Explain the fields of a kind, and how podctl handles them",
		Long: "Show the Kubernetes API documentation of a field, and the fields below it. " +
			"Also show whether podctl honours the field,\nand how an edit affects a running pod." +
			flags.ExitCodes("0 success", "1 error"),
		Example: "  podctl explain pod.spec.containers.livenessProbe\n" +
			"  podctl explain deployment.spec.strategy",
		Args: flags.NeedsUpTo(1, "one kind or field, for example pod.spec"),
		ValidArgsFunction: completion.Words(
			"pod.spec", "deployment.spec", "statefulset.spec", "daemonset.spec", "replicaset.spec", "job.spec",
			"cronjob.spec", "service.spec", "configmap", "secret", "pvc.spec",
		),
		RunE: func(_ *cobra.Command, args []string) error { return runExplain(sess, args[0]) },
	}
	return cmd
}

// explainable returns the Go type of a kind, or nil if podctl does not know the kind.
func explainable(kind string) reflect.Type {
	if w, o := podspec.NewWorkload(kind), podspec.NewObject(kind); w != nil {
		return reflect.TypeOf(w.API()).Elem()
	} else if o != nil {
		return reflect.TypeOf(o.API()).Elem()
	}
	if kind == podspec.KindPod {
		return reflect.TypeFor[v1.Pod]()
	}
	return nil
}

func runExplain(sess *session.Session, arg string) error {
	word, path, _ := strings.Cut(arg, ".")
	kind := podspec.KindOfWord(word)
	of := explainable(kind.Name)
	if of == nil {
		return exit.Usagef("podctl explain does not know the kind %s; it knows %s",
			word, strings.Join(selection.KindWords(), ", "))
	}
	e := &explanation{kind: kind.Name, path: path, of: of, doc: docOf(of)[""]}
	if err := e.walk(); err != nil {
		return err
	}
	e.write(sess.IO, kind.APIVersion)
	return nil
}

// explanation describes a field of a kind.
type explanation struct {
	kind, path string
	of         reflect.Type
	// name and doc are the name and description of the last part of the path. For the kind itself, name is empty and
	// doc describes the kind.
	name, doc string
	list      bool
}

// walk goes to the field that the path names. Lists and maps need no index, as in kubectl.
func (e *explanation) walk() error {
	if e.path == "" {
		return nil
	}
	at := e.kind
	for part := range strings.SplitSeq(e.path, ".") {
		inner, _ := elem(e.of)
		next := fieldpath.Step(inner, part)
		if inner.Kind() != reflect.Struct || next == nil {
			return exit.Usagef("%s has no field %q; `podctl explain %s` lists its fields", at, part, at)
		}
		e.name, e.doc, e.of = part, docOf(inner)[part], next
		at += "." + part
	}
	_, e.list = elem(e.of)
	return nil
}

// elem returns the element type of a list, map or pointer, and whether there can be several elements.
func elem(t reflect.Type) (inner reflect.Type, several bool) {
	for t = fieldpath.Deref(t); hasElements(t); t = fieldpath.Deref(t.Elem()) {
		several = true
	}
	return t, several
}

// hasElements reports whether a type is a list or a map. Bytes count as one value.
func hasElements(t reflect.Type) bool {
	return (t.Kind() == reflect.Slice || t.Kind() == reflect.Map) && t.Elem().Kind() != reflect.Uint8
}

// docOf returns the descriptions of a type's fields. The empty name has the description of the type itself.
func docOf(t reflect.Type) map[string]string {
	inner, _ := elem(t)
	if described, ok := reflect.TypeAssert[interface{ SwaggerDoc() map[string]string }](reflect.New(inner).Elem()); ok {
		return described.SwaggerDoc()
	}
	return nil
}

func (e *explanation) write(io *terminal.IO, version string) {
	io.Print("KIND:       %s", e.kind)
	io.Print("VERSION:    %s", version)
	io.Print("")
	if e.name != "" {
		io.Print("FIELD: %s <%s>", e.name, typeName(e.of))
	}
	if text := e.support(); text != "" {
		io.Print("PODCTL: %s", text)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "\nDESCRIPTION:\n%s\n", indented(e.doc, 4))
	e.writeFields(&b)
	_ = table.WriteTrimmed(io.Out, b.String())
}

// writeFields lists the fields below the current one.
func (e *explanation) writeFields(b *strings.Builder) {
	inner, _ := elem(e.of)
	if inner.Kind() != reflect.Struct || len(fieldpath.Fields(inner)) == 0 {
		return
	}
	b.WriteString("\nFIELDS:\n")
	docs := docOf(inner)
	for _, f := range fieldpath.Fields(inner) {
		fmt.Fprintf(b, "  %s\t<%s>\n%s\n\n", f.Name, typeName(f.Type), indented(docs[f.Name], 4))
	}
}

// support describes how podctl handles the field.
func (e *explanation) support() string {
	f, ok := e.classified()
	if !ok {
		return ""
	}
	text := string(f.Support)
	if change := map[fields.ChangeClass]string{
		fields.Replace:    "an edit replaces containers",
		fields.NewSandbox: "an edit recreates the sandbox",
		fields.InPlace:    "an edit changes the running container",
		fields.Live:       "an edit restarts nothing",
		fields.NextStart:  "an edit takes effect at the next start",
		fields.NewPod:     "an edit takes effect only in a new pod",
	}[f.Change]; change != "" {
		text += "; " + change
	}
	if f.Note != "" {
		text += ". " + f.Note
	}
	return text
}

// classified returns the row of the field in the field tables. ok is false for kinds without a table, such as
// ConfigMaps.
func (e *explanation) classified() (fields.Field, bool) {
	path := e.path
	if rows := fields.Kind(e.kind); rows != nil {
		inTemplate, ok := strings.CutPrefix(strings.TrimPrefix(path, "spec.jobTemplate."), "spec.template.")
		if !ok {
			return fields.TableOf(rows).Classify(path)
		}
		path = inTemplate
	} else if e.kind != "Pod" {
		return fields.Field{}, false
	}
	return fields.NewTable().Classify(path)
}

// typeName returns a type in kubectl's notation: []Container, map[string]string, string.
func typeName(t reflect.Type) string {
	t = fieldpath.Deref(t)
	switch t.Kind() { //nolint:exhaustive // the API has no other kinds
	case reflect.Slice:
		return "[]" + typeName(t.Elem())
	case reflect.Map:
		return fmt.Sprintf("map[%s]%s", typeName(t.Key()), typeName(t.Elem()))
	case reflect.Struct:
		return t.Name()
	case reflect.Bool:
		return "boolean"
	case reflect.String:
		return "string"
	case reflect.Int, reflect.Int32, reflect.Int64:
		return "integer"
	}
	return t.Kind().String()
}

// indented wraps a text and indents each line.
func indented(text string, by int) string {
	const width = 76
	if text == "" {
		text = "<empty>"
	}
	var b strings.Builder
	for paragraph := range strings.SplitSeq(text, "\n") {
		for line := range strings.SplitSeq(terminal.Wrap(paragraph, width-by), "\n") {
			b.WriteString(strings.Repeat(" ", by) + line + "\n")
		}
	}
	return strings.TrimRight(b.String(), "\n ")
}
