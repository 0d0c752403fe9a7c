package inspect

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/podctl/podctl/commands/exit"
	"github.com/podctl/podctl/commands/selection"
	"github.com/podctl/podctl/commands/session"
	"github.com/podctl/podctl/commands/view"
	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/controller"
	"github.com/podctl/podctl/runtime/objects"
	"github.com/podctl/podctl/runtime/service"
	"github.com/podctl/podctl/runtime/state"
)

// objectLook reads and lists stored objects.
type objectLook struct {
	sess *session.Session
	o    *getOptions
	// data has the claims that have data.
	data []state.Claim
}

func runGetObjects(ctx context.Context, sess *session.Session, o *getOptions, targets *selection.Targets) error {
	switch {
	case len(targets.Pods) > 0:
		return exit.Usagef("get lists one kind at a time: name either pods or %s", targets.Objects[0].Word()+"s")
	case o.Snapshot != "" || o.watch || o.probe || o.printer.containers || o.Fields != "" || len(o.Files) > 0:
		return exit.Usagef("--filename, --snapshot, --watch, --probe, --containers and --field-selector are for pods")
	case o.Labels != "" && len(targets.Objects) > 0:
		return exit.Usagef("--selector cannot be used with names")
	case hasSeveralKinds(targets.Objects):
		return exit.Usagef("get lists one kind at a time")
	}
	if err := o.printer.prepare(ctx, sess.IO); err != nil {
		return err
	}
	l := &objectLook{sess: sess, o: o}
	var err error
	if l.data, err = sess.Flags.Layout().Claims().List(); err != nil {
		return err
	}
	kind := targets.Kind()
	if len(targets.Objects) > 0 {
		kind = targets.Objects[0].Kind
	}
	all := func() ([]*podspec.Object, error) { return l.ofKind(kind) }
	found, missing := storedOf(o, targets.Objects, l.get, all, (*podspec.Object).Meta)
	l.setPhases(found)
	if err := sortByField(o.printer.sortBy, strings.ToLower(kind), found, view.ObjectDocument); err != nil {
		return err
	}
	if len(found) == 0 && (missing != nil || o.printer.isTable()) {
		if missing == nil {
			o.noteNone(sess, kind)
		}
		return missing
	}
	list, unknown := l.listing(ctx, kind, found)
	if list == nil {
		return errors.Join(unknown, missing)
	}
	list.single = len(targets.Objects) == 1
	return errors.Join(o.printer.print(list), unknown, missing)
}

// storedOf returns the named workloads or objects, or those of the list that match the labels. An unreadable one does
// not hide the others.
func storedOf[T any](
	o *getOptions, keys []state.ObjectKey, get func(state.ObjectKey) (*T, error), list func() ([]*T, error),
	meta func(*T) *metav1.ObjectMeta,
) ([]*T, error) {
	selector, err := labels.Parse(o.Labels)
	if err != nil {
		return nil, exit.Usagef("--selector: %v", err)
	}
	if len(keys) == 0 {
		found, err := list()
		others := func(one *T) bool { return !selector.Matches(labels.Set(meta(one).Labels)) }
		return slices.DeleteFunc(found, others), err
	}
	var found []*T
	var errs []error
	for _, key := range keys {
		one, err := get(key)
		if one != nil {
			found = append(found, one)
		}
		errs = append(errs, err)
	}
	return found, errors.Join(errs...)
}

// ofKind returns the stored objects of a kind. For claims, it adds those that have data but were only applied as part
// of a pod.
func (l *objectLook) ofKind(kind string) ([]*podspec.Object, error) {
	found, unreadable := l.sess.Objects().List(func(k state.ObjectKey) bool {
		return k.Kind == kind && l.o.Reaches(l.sess, k.Namespace)
	})
	if kind != podspec.KindClaim {
		return found, unreadable
	}
	for _, claim := range l.data {
		key := state.ObjectKey{Namespace: claim.Namespace, Kind: podspec.KindClaim, Name: claim.Name}
		isStored := slices.ContainsFunc(found, func(o *podspec.Object) bool { return objects.KeyOf(o) == key })
		if l.o.Reaches(l.sess, claim.Namespace) && !isStored {
			found = append(found, l.bareClaim(key))
		}
	}
	slices.SortFunc(found, func(a, b *podspec.Object) int { return objects.KeyOf(a).Compare(objects.KeyOf(b)) })
	return found, unreadable
}

// bareClaim returns a claim without a spec, for a claim that exists only as data.
func (l *objectLook) bareClaim(key state.ObjectKey) *podspec.Object {
	created := l.sess.Flags.Layout().Claims().CreatedAt(state.Claim{Namespace: key.Namespace, Name: key.Name})
	return &podspec.Object{Claim: &v1.PersistentVolumeClaim{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: podspec.KindClaim},
		ObjectMeta: metav1.ObjectMeta{
			Namespace:         key.Namespace,
			Name:              key.Name,
			CreationTimestamp: metav1.NewTime(created),
		},
	}}
}

func (l *objectLook) hasData(key state.ObjectKey) bool {
	claim := state.Claim{Namespace: key.Namespace, Name: key.Name}
	return key.Kind == podspec.KindClaim && slices.Contains(l.data, claim)
}

// setPhases sets the phase of claims: Bound if they have data or a PersistentVolume, otherwise Pending.
func (l *objectLook) setPhases(found []*podspec.Object) {
	for _, o := range found {
		if o.Claim == nil {
			continue
		}
		o.Claim.Status.Phase = v1.ClaimPending
		if o.Volume != nil || l.hasData(objects.KeyOf(o)) {
			o.Claim.Status.Phase = v1.ClaimBound
		}
	}
}

// listing returns the listing of objects of one kind, or of the endpoints of Services. With a non-nil result, the error
// lists the pods that could not be observed.
func (l *objectLook) listing(ctx context.Context, kind string, found []*podspec.Object) (*listing, error) {
	list, word := &listing{list: view.CoreList[any]}, strings.ToLower(kind)
	for _, o := range found {
		list.items = append(list.items, listed{name: word + "/" + o.Meta().Name, document: view.ObjectDocument(o)})
	}
	if l.o.endpoints {
		return l.endpoints(ctx, list, found)
	}
	list.table = func() (header []string, rows []view.Row, err error) {
		v := l.o.lists()
		var users func(*podspec.Object) []string
		if kind != podspec.KindService || v.Wide {
			users, err = l.users()
		}
		header, rows = v.Objects(kind, found, users)
		return header, rows, err
	}
	return list, nil
}

// endpoints replaces the Services of a listing with their endpoints.
func (l *objectLook) endpoints(ctx context.Context, list *listing, found []*podspec.Object) (*listing, error) {
	services := make([]*v1.Service, 0, len(found))
	for _, o := range found {
		services = append(services, o.Service)
	}
	all, unknown := endpointsOf(ctx, l.sess, services)
	if all == nil {
		return nil, unknown
	}
	for i, o := range found {
		list.items[i] = listed{name: "endpoints/" + o.Meta().Name, document: all[i]}
	}
	list.table = func() ([]string, []view.Row, error) {
		header, rows := l.o.lists().Endpoints(found, func(i int) (ready, notReady []string) {
			return endpointTexts(all[i], nil)
		})
		return header, rows, nil
	}
	return list, unknown
}

// users returns a function that returns the users of an object. For a Service, these are the applied pods that it
// selects.
func (l *objectLook) users() (func(*podspec.Object) []string, error) {
	applied, err := selection.Applied(l.sess)
	if err != nil {
		return nil, err
	}
	records, unreadable := l.sess.Workloads().List(func(state.ObjectKey) bool { return true })
	if unreadable != nil {
		l.sess.IO.NoteOnce("note: %v", unreadable)
	}
	return func(o *podspec.Object) []string {
		if o.Service != nil {
			return podsBehind(o.Service, applied)
		}
		return usersOf(objects.KeyOf(o), applied, records)
	}, nil
}

// podsBehind returns the names of the applied pods that a Service selects.
func podsBehind(s *v1.Service, applied []*podspec.Desired) (names []string) {
	for _, d := range applied {
		if service.Selects(s, d.Pod) {
			names = append(names, d.Pod.Name)
		}
	}
	return names
}

// usersOf returns the users of an object: workloads whose pods use it, even if they have no pods now, and pods without
// a workload.
func usersOf(key state.ObjectKey, applied []*podspec.Desired, records []*controller.Record) (names []string) {
	for _, d := range objects.Users(key, applied) {
		name := d.Pod.Name
		if owner := metav1.GetControllerOfNoCopy(d.Pod); owner != nil {
			name = strings.ToLower(owner.Kind) + "/" + owner.Name
		}
		names = append(names, name)
	}
	for _, r := range records {
		if len(objects.Users(key, []*podspec.Desired{r.Workload.Template})) > 0 {
			names = append(names, r.Key().Word()+"/"+r.Key().Name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// hasSeveralKinds reports whether the keys are of different kinds.
func hasSeveralKinds(keys []state.ObjectKey) bool {
	return slices.ContainsFunc(keys, func(k state.ObjectKey) bool { return k.Kind != keys[0].Kind })
}

// runGetWorkloads lists workloads of one kind.
func runGetWorkloads(ctx context.Context, sess *session.Session, o *getOptions, targets *selection.Targets) error {
	switch {
	case len(targets.Pods)+len(targets.Objects) > 0, hasSeveralKinds(targets.Workloads):
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

// workloadLook reads and lists workloads of one kind, once or repeatedly.
type workloadLook struct {
	sess    *session.Session
	o       *getOptions
	targets *selection.Targets
	// unfit has a text for each workload that cannot have a pod on this machine, with the reason.
	unfit []string
}

// now returns the current workloads. With an error it returns those that could be read, or nil if there are none.
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

// records returns the named workloads, or all of the kind.
func (w *workloadLook) records() ([]*controller.Record, error) {
	store := w.sess.Workloads()
	isWanted := func(k state.ObjectKey) bool { return k.Kind == w.targets.Kind() && w.o.Reaches(w.sess, k.Namespace) }
	list := func() ([]*controller.Record, error) { return store.List(isWanted) }
	return storedOf(w.o, w.targets.Workloads, store.Get, list, metaOf)
}

func metaOf(r *controller.Record) *metav1.ObjectMeta { return r.Workload.Meta() }

// workloadRows observes the pods of workloads.
func workloadRows(
	ctx context.Context, sess *session.Session, records []*controller.Record,
) ([]view.WorkloadRow, error) {
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
