package inspect

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/podctl/podctl/commands/exit"
	"github.com/podctl/podctl/commands/selection"
	"github.com/podctl/podctl/commands/session"
	"github.com/podctl/podctl/commands/terminal"
	"github.com/podctl/podctl/commands/view"
	"github.com/podctl/podctl/runtime/controller"
	"github.com/podctl/podctl/runtime/state"
)

// runGetWorkloads lists workloads of one kind.
func runGetWorkloads(ctx context.Context, sess *session.Session, o *getOptions, targets *selection.Targets) error {
	switch {
	case len(targets.Pods)+len(targets.Objects) > 0, slices.ContainsFunc(targets.Workloads, func(k state.ObjectKey) bool { return k.Kind != targets.Workloads[0].Kind }):
		return exit.Usagef("get lists one kind at a time")
	case o.Snapshot != "" || o.probe || o.printer.containers || o.Fields != "" || len(o.Files) > 0:
		return exit.Usagef("--filename, --snapshot, --probe, --containers and --field-selector are for pods")
	case o.Labels != "" && len(targets.Workloads) > 0:
		return exit.Usagef("--selector cannot be used with names")
	case o.printer.sortBy != "":
		return exit.Usagef("--sort-by is for pods and objects: workloads are listed by name")
	}
	if err := o.printer.prepare(ctx, sess.IO); err != nil {
		return err
	}
	w := &workloadLook{sess: sess, o: o, targets: targets, shown: map[state.ObjectKey]string{}}
	err := w.first(ctx)
	if !o.watch {
		return err
	}
	if err != nil {
		return err
	}
	return w.follow(ctx)
}

// workloadLook is one look, or several, at workloads of one kind.
type workloadLook struct {
	sess    *session.Session
	o       *getOptions
	targets *selection.Targets
	// shown are the workloads as they were shown last, as documents.
	shown map[state.ObjectKey]string
}

// rows looks at the workloads. With an error there are those that could be read.
func (w *workloadLook) rows(ctx context.Context) ([]view.WorkloadRow, error) {
	records, missing := workloadRecords(w.sess, w.o, w.targets)
	if len(records) == 0 {
		return nil, missing
	}
	rows, err := workloadRows(ctx, w.sess, records)
	if err != nil {
		return nil, err
	}
	errs := []error{missing}
	for i := range rows {
		errs = append(errs, rows[i].Expansion.UnknownErr())
	}
	return rows, errors.Join(errs...)
}

// first shows all workloads.
func (w *workloadLook) first(ctx context.Context) error {
	rows, err := w.rows(ctx)
	if len(rows) == 0 && (err != nil || w.o.printer.isTable()) {
		if err == nil && !w.o.watch {
			w.o.noteNone(w.sess, w.targets.Kind())
		}
		return err
	}
	for i := range rows {
		if why := rows[i].Expansion.Unfit; why != "" {
			w.sess.IO.Note("note: %s: no pod here: %s", rows[i].Record.Key(), view.UnfitText(why))
		}
	}
	if _, bad := w.changed(rows); bad != nil {
		return bad
	}
	document := view.WorkloadList(rows)
	if len(w.targets.Workloads) == 1 {
		document = view.WorkloadDocument(&rows[0])
	}
	return errors.Join(printWorkloads(w.sess, w.o, rows, document), err)
}

// follow shows the workloads that change, until it is interrupted.
func (w *workloadLook) follow(ctx context.Context) error {
	for terminal.Sleep(ctx, terminal.WatchInterval) {
		rows, err := w.rows(ctx)
		if err != nil && ctx.Err() == nil {
			w.sess.IO.NoteOnce("note: %s", w.sess.ErrorText(err))
		}
		changed, err := w.changed(rows)
		if err == nil {
			err = w.showChanged(rows, changed)
		}
		if err != nil {
			return err
		}
	}
	return session.WatchEnded(ctx)
}

// changed reports which workloads are not as they were shown last, and remembers them as shown.
func (w *workloadLook) changed(rows []view.WorkloadRow) ([]bool, error) {
	changed := make([]bool, len(rows))
	for i := range rows {
		text, err := json.Marshal(view.WorkloadDocument(&rows[i]))
		if err != nil {
			return nil, err
		}
		key := rows[i].Record.Key()
		changed[i] = w.shown[key] != string(text)
		w.shown[key] = string(text)
	}
	return changed, nil
}

// showChanged writes the workloads that changed: rows as wide as those of the whole table, or documents.
func (w *workloadLook) showChanged(rows []view.WorkloadRow, changed []bool) error {
	if !slices.Contains(changed, true) {
		return nil
	}
	if w.o.printer.isTable() {
		header, cells, err := workloadTable(w.sess, w.o, rows)
		if err != nil {
			return err
		}
		return printRows(w.sess.IO, header, cells, changed)
	}
	for i := range rows {
		if !changed[i] {
			continue
		}
		if err := printWorkloads(w.sess, w.o, rows[i:i+1], view.WorkloadDocument(&rows[i])); err != nil {
			return err
		}
	}
	return nil
}

// workloadRecords are the workloads that are named, or all of a kind. One that cannot be read hides no other.
func workloadRecords(sess *session.Session, o *getOptions, targets *selection.Targets) ([]*controller.Record, error) {
	if len(targets.Workloads) > 0 {
		var found []*controller.Record
		var errs []error
		for _, key := range targets.Workloads {
			r, err := sess.Workloads().Get(key)
			if r != nil {
				found = append(found, r)
			}
			errs = append(errs, err)
		}
		return found, errors.Join(errs...)
	}
	selector, err := labels.Parse(o.Labels)
	if err != nil {
		return nil, exit.Usagef("--selector: %v", err)
	}
	found, err := sess.Workloads().List(func(k state.ObjectKey) bool {
		return k.Kind == targets.Kind() && o.Reaches(sess, k.Namespace)
	})
	return slices.DeleteFunc(found, func(r *controller.Record) bool { return !selector.Matches(labels.Set(r.Workload.Meta().Labels)) }), err
}

// workloadRows looks at the pods of workloads.
func workloadRows(ctx context.Context, sess *session.Session, records []*controller.Record) ([]view.WorkloadRow, error) {
	engine, err := sess.Engine()
	if err != nil {
		return nil, err
	}
	applied, _, err := state.Applied(sess.Flags.Layout())
	if err != nil {
		return nil, err
	}
	x := engine.Expander(sess.Flags.NodeLabels(nil))
	rows := make([]view.WorkloadRow, 0, len(records))
	for _, r := range records {
		expansion, err := x.Expand(ctx, r, applied)
		if err != nil {
			return nil, err
		}
		rows = append(rows, view.WorkloadRow{Record: r, Expansion: expansion})
	}
	return rows, nil
}

// printWorkloads prints workloads in the output format.
func printWorkloads(sess *session.Session, o *getOptions, rows []view.WorkloadRow, document any) error {
	p := &o.printer
	switch {
	case terminal.IsDocument(p.output):
		return terminal.WriteDocument(sess.IO.Out, p.output, document)
	case p.output == "name":
		for i := range rows {
			key := rows[i].Record.Key()
			sess.IO.Print("%s/%s", key.Word(), key.Name)
		}
		return nil
	case p.template != nil:
		return p.executeTemplate(document)
	}
	header, cells, err := workloadTable(sess, o, rows)
	if err != nil {
		return err
	}
	if p.noHeaders {
		header = nil
	}
	return terminal.Table(sess.IO.Out, header, cells)
}

func workloadTable(sess *session.Session, o *getOptions, rows []view.WorkloadRow) ([]string, [][]string, error) {
	p := &o.printer
	if p.columns != nil {
		documents := make([]any, 0, len(rows))
		for i := range rows {
			documents = append(documents, view.WorkloadDocument(&rows[i]))
		}
		header, custom, err := customTable(p.columns, documents)
		return header, cellsOf(custom), err
	}
	v := &view.Workloads{Now: sess.IO.Now(), Wide: p.output == "wide", Namespaces: o.AllNamespaces, LabelColumns: p.LabelColumns}
	header, cells := v.Table(rows)
	return header, cells, nil
}
