package inspect

import (
	"bytes"
	"context"
	"encoding/json"
	"io"

	"github.com/podctl/podctl/commands/exit"
	"github.com/podctl/podctl/commands/session"
	"github.com/podctl/podctl/commands/terminal"
)

// runGetKinds lists objects of several kinds: one table after the other, or one document of all.
func runGetKinds(ctx context.Context, sess *session.Session, o *getOptions, kinds [][]string) error {
	if o.watch || o.Snapshot != "" || len(o.Files) > 0 {
		return exit.Usagef("--watch, --snapshot and --filename are for one kind")
	}
	if err := o.printer.prepare(ctx, sess.IO); err != nil {
		return err
	}
	if !o.printer.isTable() && o.printer.output != "name" {
		return getKindsDocument(ctx, sess, o, kinds)
	}
	out := &partsWriter{out: sess.IO.Out, apart: o.printer.isTable()}
	err := eachKind(ctx, o, kinds, func(one *getOptions, args []string) error {
		out.begun = false
		return writingTo(sess, out, func() error { return runGet(ctx, sess, one, args) })
	})
	if err == nil && !out.any {
		sess.IO.Note("No resources found %s.", o.Where(sess.Flags.Namespace))
	}
	return err
}

// eachKind gets the objects of one kind after the other. A kind of which there is nothing is not told.
func eachKind(ctx context.Context, o *getOptions, kinds [][]string, get func(one *getOptions, args []string) error) error {
	var outcomes []error
	for _, args := range kinds {
		one := *o
		one.amongOthers = true
		outcomes = append(outcomes, get(&one, args))
	}
	return exit.Join(ctx, outcomes...)
}

// getKindsDocument prints a List of the objects of several kinds.
func getKindsDocument(ctx context.Context, sess *session.Session, o *getOptions, kinds [][]string) error {
	items := []any{}
	missing := eachKind(ctx, o, kinds, func(one *getOptions, args []string) error {
		one.printer.output, one.printer.template = "json", nil
		var text bytes.Buffer
		err := writingTo(sess, &text, func() error { return runGet(ctx, sess, one, args) })
		if text.Len() == 0 {
			return err
		}
		var document map[string]any
		if bad := json.Unmarshal(text.Bytes(), &document); bad != nil {
			return bad
		}
		if of, isList := document["items"].([]any); isList {
			items = append(items, of...)
		} else {
			items = append(items, document)
		}
		return err
	})
	document := map[string]any{"apiVersion": "v1", "kind": "List", "metadata": map[string]any{}, "items": items}
	if o.printer.template != nil {
		return exit.Join(ctx, o.printer.executeTemplate(document), missing)
	}
	return exit.Join(ctx, terminal.WriteDocument(sess.IO.Out, o.printer.output, document), missing)
}

// writingTo lets results go somewhere else meanwhile.
func writingTo(sess *session.Session, out io.Writer, do func() error) error {
	before := sess.IO.Out
	sess.IO.Out = out
	defer func() { sess.IO.Out = before }()
	return do()
}

// partsWriter writes several parts, with an empty line between those of which something is written if they stand apart.
type partsWriter struct {
	out        io.Writer
	apart      bool
	any, begun bool
}

func (p *partsWriter) Write(text []byte) (int, error) {
	if p.apart && p.any && !p.begun {
		if _, err := io.WriteString(p.out, "\n"); err != nil {
			return 0, err
		}
	}
	p.any, p.begun = true, true
	return p.out.Write(text)
}
