package inspect

import (
	"context"
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
	case o.Snapshot != "" || o.watch || o.probe || o.printer.containers || o.Fields != "" || len(o.Files) > 0:
		return exit.Usagef("--filename, --snapshot, --watch, --probe, --containers and --field-selector are for pods")
	case o.Labels != "" && len(targets.Workloads) > 0:
		return exit.Usagef("--selector cannot be used with names")
	case o.printer.sortBy != "":
		return exit.Usagef("--sort-by is for pods and objects: workloads are listed by name")
	}
	if err := o.printer.prepare(ctx, sess.IO); err != nil {
		return err
	}
	records, missing := workloadRecords(sess, o, targets)
	if len(records) == 0 && missing == nil && o.printer.isTable() {
		o.noteNone(sess, targets.Kind())
		return nil
	}
	if len(records) == 0 && missing != nil {
		return missing
	}
	rows, err := workloadRows(ctx, sess, records)
	if err != nil {
		return err
	}
	for i := range rows {
		if why := rows[i].Expansion.Unfit; why != "" {
			sess.IO.Note("note: %s: no pod here: %s", rows[i].Record.Key(), view.UnfitText(why))
		}
	}
	document := view.WorkloadList(rows)
	if len(targets.Workloads) == 1 {
		document = view.WorkloadDocument(&rows[0])
	}
	errs := []error{printWorkloads(sess, o, rows, document), missing}
	for i := range rows {
		errs = append(errs, rows[i].Expansion.UnknownErr())
	}
	return errors.Join(errs...)
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
		return k.Kind == targets.Kind() && (o.AllNamespaces || k.Namespace == sess.Flags.Namespace)
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
	x := sess.Expander(engine, nil)
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
