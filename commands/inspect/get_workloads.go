package inspect

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podctl/podctl/commands/exit"
	"github.com/podctl/podctl/commands/selection"
	"github.com/podctl/podctl/commands/session"
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
	w := &workloadLook{sess: sess, o: o, targets: targets}
	found, err := w.now(ctx)
	if found == nil || len(found.items) == 0 && o.printer.isTable() {
		if err == nil && !o.watch {
			o.noteNone(sess, targets.Kind())
		}
	} else {
		for _, text := range w.unfit {
			sess.IO.Note("note: %s", text)
		}
		err = errors.Join(o.printer.print(found), err)
	}
	if err != nil || !o.watch {
		return err
	}
	return o.follow(ctx, sess, func(ctx context.Context) (*listing, error) {
		found, err := w.now(ctx)
		if err != nil && ctx.Err() == nil {
			sess.IO.NoteOnce("note: %s", sess.ErrorText(err))
		}
		return found, nil
	})
}

// workloadLook is one look, or several, at workloads of one kind.
type workloadLook struct {
	sess    *session.Session
	o       *getOptions
	targets *selection.Targets
	// unfit says of which workloads this machine has no pod, and why.
	unfit []string
}

// now looks at the workloads. With an error there are those that could be read; nil for none.
func (w *workloadLook) now(ctx context.Context) (*listing, error) {
	records, missing := w.records()
	rows, err := workloadRows(ctx, w.sess, records)
	if err != nil || len(rows) == 0 && missing != nil {
		return nil, cmp.Or(err, missing)
	}
	found, errs := &listing{single: len(w.targets.Workloads) == 1, list: view.CoreList[any]}, []error{missing}
	w.unfit = nil
	for i := range rows {
		key, document := rows[i].Record.Key(), view.WorkloadDocument(&rows[i])
		text, err := json.Marshal(document)
		if err != nil {
			return nil, err
		}
		found.items = append(found.items, listed{key.Word() + "/" + key.Name, document, string(text)})
		errs = append(errs, rows[i].Expansion.UnknownErr())
		if why := rows[i].Expansion.Unfit; why != "" {
			w.unfit = append(w.unfit, fmt.Sprintf("%s: no pod here: %s", key, view.UnfitText(why)))
		}
	}
	found.table = func() ([]string, []view.Row, error) {
		header, table := w.o.lists().Workloads(rows)
		for i := range table {
			table[i].State = found.items[i].state
		}
		return header, table, nil
	}
	return found, errors.Join(errs...)
}

// records are the workloads that are named, or all of a kind.
func (w *workloadLook) records() ([]*controller.Record, error) {
	return storedOf(w.o, w.targets.Workloads, w.sess.Workloads().Get, func() ([]*controller.Record, error) {
		return w.sess.Workloads().List(func(k state.ObjectKey) bool { return k.Kind == w.targets.Kind() && w.o.Reaches(w.sess, k.Namespace) })
	}, metaOf)
}

func metaOf(r *controller.Record) *metav1.ObjectMeta { return r.Workload.Meta() }

// workloadRows looks at the pods of workloads.
func workloadRows(ctx context.Context, sess *session.Session, records []*controller.Record) ([]view.WorkloadRow, error) {
	if len(records) == 0 {
		return nil, nil
	}
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
