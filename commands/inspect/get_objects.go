package inspect

import (
	"context"
	"errors"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/podctl/podctl/commands/exit"
	"github.com/podctl/podctl/commands/selection"
	"github.com/podctl/podctl/commands/session"
	"github.com/podctl/podctl/commands/terminal"
	"github.com/podctl/podctl/commands/view"
	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/controller"
	"github.com/podctl/podctl/runtime/objects"
	"github.com/podctl/podctl/runtime/service"
	"github.com/podctl/podctl/runtime/state"
)

// objectLook is one look at stored objects.
type objectLook struct {
	sess *session.Session
	o    *getOptions
	// data are the claims that have data.
	data []state.Claim
	// single is set when one object is named, which is shown as it is.
	single bool
}

func runGetObjects(ctx context.Context, sess *session.Session, o *getOptions, targets *selection.Targets) error {
	switch {
	case len(targets.Pods) > 0:
		return exit.Usagef("get lists one kind at a time: name either pods or %s", targets.Objects[0].Word()+"s")
	case o.Snapshot != "" || o.watch || o.probe || o.printer.containers || o.Fields != "" || len(o.Files) > 0:
		return exit.Usagef("--filename, --snapshot, --watch, --probe, --containers and --field-selector are for pods")
	case o.Labels != "" && len(targets.Objects) > 0:
		return exit.Usagef("--selector cannot be used with names")
	case slices.ContainsFunc(targets.Objects, func(k state.ObjectKey) bool { return k.Kind != targets.Objects[0].Kind }):
		return exit.Usagef("get lists one kind at a time")
	}
	if err := o.printer.prepare(ctx, sess.IO); err != nil {
		return err
	}
	l := &objectLook{sess: sess, o: o}
	data, err := sess.Flags.Layout().Claims().List()
	if err != nil {
		return err
	}
	l.data = data
	if len(targets.Objects) > 0 {
		return l.named(ctx, targets.Objects)
	}
	return l.all(ctx, targets.Kind())
}

// named prints the objects that are named. One that is not there hides no other.
func (l *objectLook) named(ctx context.Context, keys []state.ObjectKey) error {
	l.single = len(keys) == 1
	var found []*podspec.Object
	var errs []error
	for _, key := range keys {
		o, err := l.get(key)
		if o != nil {
			found = append(found, o)
		}
		errs = append(errs, err)
	}
	if err := l.arrange(keys[0].Kind, found); err != nil {
		return err
	}
	if len(found) > 0 {
		errs = slices.Insert(errs, 0, l.show(ctx, keys[0].Kind, found))
	}
	return errors.Join(errs...)
}

// all prints the objects of a kind.
func (l *objectLook) all(ctx context.Context, kind string) error {
	selector, err := labels.Parse(l.o.Labels)
	if err != nil {
		return exit.Usagef("--selector: %v", err)
	}
	here := func(namespace string) bool { return l.o.Reaches(l.sess, namespace) }
	found, unreadable := l.sess.Objects().List(func(k state.ObjectKey) bool { return k.Kind == kind && here(k.Namespace) })
	if kind == podspec.KindClaim {
		found = l.withBareClaims(found, here)
	}
	found = slices.DeleteFunc(found, func(o *podspec.Object) bool { return !selector.Matches(labels.Set(o.Meta().Labels)) })
	if err := l.arrange(kind, found); err != nil {
		return err
	}
	if len(found) == 0 && l.o.printer.isTable() {
		if unreadable == nil {
			l.o.noteNone(l.sess, kind)
		}
		return unreadable
	}
	return errors.Join(l.show(ctx, kind, found), unreadable)
}

// withBareClaims adds the claims that have data and were never applied apart from a pod.
func (l *objectLook) withBareClaims(found []*podspec.Object, here func(namespace string) bool) []*podspec.Object {
	for _, claim := range l.data {
		key := state.ObjectKey{Namespace: claim.Namespace, Kind: podspec.KindClaim, Name: claim.Name}
		if here(claim.Namespace) && !slices.ContainsFunc(found, func(o *podspec.Object) bool { return objects.KeyOf(o) == key }) {
			found = append(found, l.bareClaim(key))
		}
	}
	slices.SortFunc(found, func(a, b *podspec.Object) int { return objects.KeyOf(a).Compare(objects.KeyOf(b)) })
	return found
}

// bareClaim is a claim of which only the data is known.
func (l *objectLook) bareClaim(key state.ObjectKey) *podspec.Object {
	created := l.sess.Flags.Layout().Claims().CreatedAt(state.Claim{Namespace: key.Namespace, Name: key.Name})
	return &podspec.Object{Claim: &v1.PersistentVolumeClaim{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: podspec.KindClaim},
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, CreationTimestamp: metav1.NewTime(created)},
	}}
}

func (l *objectLook) hasData(key state.ObjectKey) bool {
	return key.Kind == podspec.KindClaim && slices.Contains(l.data, state.Claim{Namespace: key.Namespace, Name: key.Name})
}

// setPhases says of claims whether they have data, or a PersistentVolume.
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

// arrange adds what is known of claims, and brings objects into the order that is asked for.
func (l *objectLook) arrange(kind string, found []*podspec.Object) error {
	l.setPhases(found)
	return sortByField(l.o.printer.sortBy, strings.ToLower(kind), found, view.ObjectDocument)
}

// show writes objects of one kind, or the endpoints of Services, in the output format: one that is named as it is, several as a list.
func (l *objectLook) show(ctx context.Context, kind string, found []*podspec.Object) error {
	if l.o.endpoints {
		return l.showEndpoints(ctx, found)
	}
	documents := make([]any, 0, len(found))
	for _, o := range found {
		documents = append(documents, view.ObjectDocument(o))
	}
	return l.print(strings.ToLower(kind), found, documents, l.document(documents), func() ([]string, [][]string, error) { return l.table(kind, found) })
}

// document is that of the object that is named, or the list of several.
func (l *objectLook) document(documents []any) any {
	if l.single {
		return documents[0]
	}
	return view.CoreList(documents)
}

// print writes objects by their documents, or as a table. Word is the kind in names.
func (l *objectLook) print(word string, found []*podspec.Object, documents []any, document any, table func() ([]string, [][]string, error)) error {
	p := &l.o.printer
	switch {
	case terminal.IsDocument(p.output):
		return terminal.WriteDocument(l.sess.IO.Out, p.output, document)
	case p.output == "name":
		for _, o := range found {
			l.sess.IO.Print("%s/%s", word, o.Meta().Name)
		}
		return nil
	case p.template != nil:
		return p.executeTemplate(document)
	case p.columns != nil:
		table = func() ([]string, [][]string, error) {
			header, custom, err := customTable(p.columns, documents)
			return header, cellsOf(custom), err
		}
	}
	header, rows, err := table()
	if err != nil {
		return err
	}
	if p.noHeaders {
		header = nil
	}
	return terminal.Table(l.sess.IO.Out, header, rows)
}

// showEndpoints writes the endpoints of Services. The error says which pods could not be observed.
func (l *objectLook) showEndpoints(ctx context.Context, found []*podspec.Object) error {
	services := make([]*v1.Service, 0, len(found))
	for _, o := range found {
		services = append(services, o.Service)
	}
	all, unknown := endpointsOf(ctx, l.sess, services)
	if all == nil {
		return unknown
	}
	documents := make([]any, 0, len(all))
	for _, one := range all {
		documents = append(documents, one)
	}
	return errors.Join(l.print("endpoints", found, documents, l.document(documents), func() ([]string, [][]string, error) {
		v := l.view()
		header, rows := v.EndpointTable(found, func(i int) (ready, notReady []string) { return endpointTexts(all[i], nil) })
		return header, rows, nil
	}), unknown)
}

// view is the table of objects that the flags ask for.
func (l *objectLook) view() *view.Objects {
	p := &l.o.printer
	return &view.Objects{Now: l.sess.IO.Now(), Wide: p.output == "wide", Namespaces: l.o.AllNamespaces, LabelColumns: p.LabelColumns}
}

func (l *objectLook) table(kind string, found []*podspec.Object) ([]string, [][]string, error) {
	v := l.view()
	if kind != podspec.KindService || v.Wide {
		var err error
		if v.Users, err = l.users(); err != nil {
			return nil, nil, err
		}
	}
	header, rows := v.Table(kind, found)
	return header, rows, nil
}

// users tells what uses an object: of a Service, the applied pods that it stands for.
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

// podsBehind are the names of the applied pods that a Service stands for.
func podsBehind(s *v1.Service, applied []*podspec.Desired) (names []string) {
	for _, d := range applied {
		if service.Selects(s, d.Pod) {
			names = append(names, d.Pod.Name)
		}
	}
	return names
}

// usersOf are the workloads whose pods take an object, also those without pods, and the applied pods of none that do.
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
