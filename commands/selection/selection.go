package selection

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/commands/exit"
	"github.com/podctl/podctl/commands/session"
	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/podspec/document"
	"github.com/podctl/podctl/podspec/input"
	"github.com/podctl/podctl/podspec/load"
	"github.com/podctl/podctl/runtime"
	"github.com/podctl/podctl/runtime/plan"
	"github.com/podctl/podctl/runtime/snapshot"
	"github.com/podctl/podctl/runtime/state"
)

// Selection is the choice of pods by a command line: manifests, pods, or neither.
type Selection struct {
	Files []string
	// Recursive reads directories recursively.
	Recursive bool
	// All selects every pod of the namespace.
	All bool
	// AllNamespaces selects pods of all namespaces if no names are given.
	AllNamespaces bool
	// Labels and Fields are a label and a field selector. An empty selector matches every pod.
	Labels, Fields string
	// Snapshot is the file to read instead of the runtime.
	Snapshot string
	// ConfigMaps are files with ConfigMaps and Secrets that are added to the manifests.
	ConfigMaps []string
	// Prune also deletes objects of the set that are no longer in the manifests. The set consists of the objects with
	// the Labels, or of those applied with the name in Set.
	Prune bool
	Set   string
	// SkipUnknown skips objects of kinds that podctl does not know.
	SkipUnknown bool
	// For is the purpose of the selection.
	For Purpose
}

// Found is the result of a selection.
type Found struct {
	Pods []*podspec.Desired
	// Objects are the objects of the manifests that are neither pods nor workloads.
	Objects []*podspec.Object
	// Workloads are those of the manifests, or all of the namespace. Their pods are not in Pods.
	Workloads []*podspec.Workload
	// Names are the keys of all objects in the manifests, including those that selectors leave out.
	Names []state.ObjectKey
	// taken are the Names of objects that pods of the manifests use.
	taken []state.ObjectKey
	// Skipped are the objects of the manifests that podctl does not use.
	Skipped []document.Skipped
	// Unreadable is the reason why a strict selection is incomplete: unreadable checkpoints, or an unknown status with
	// a status selector. The command does the rest and then fails with this error.
	Unreadable error
}

// Observer is the source of plans and status: a runtime or a recording.
type Observer interface {
	Plan(ctx context.Context, d *podspec.Desired, opts plan.Options) (*plan.Plan, error)
	List(ctx context.Context, pods []*podspec.Desired) ([]*v1.Pod, error)
}

// Observed is the result of a selection with its Observer.
type Observed struct {
	Found
	Observer Observer
	// Engine is the runtime; nil for a snapshot.
	Engine *runtime.Engine
}

// Observe finds pods and their Observer.
func (s Selection) Observe(ctx context.Context, sess *session.Session, args []string) (*Observed, error) {
	if s.Snapshot == "" {
		found, err := s.Find(ctx, sess, args)
		if err != nil {
			return nil, err
		}
		engine, err := sess.Engine()
		return &Observed{Found: found, Observer: engine, Engine: engine}, err
	}
	recording, err := readRecording(ctx, sess, s.Snapshot)
	if err != nil {
		return nil, err
	}
	f := &finder{Selection: s, sess: sess, recording: recording}
	found, err := f.find(ctx, args)
	return &Observed{Found: found, Observer: recording}, err
}

func readRecording(ctx context.Context, sess *session.Session, path string) (snapshot.Recording, error) {
	text, err := sess.IO.ReadFile(ctx, path)
	if err != nil {
		return nil, fmt.Errorf("reading the snapshot: %w", err)
	}
	recording, err := snapshot.Read(text)
	if err != nil {
		return nil, fmt.Errorf("reading the snapshot %s: %w", path, err)
	}
	return recording, nil
}

// Find finds the pods and objects that the arguments name. Without arguments it finds every pod that podctl applied in
// the namespace. With an error it returns no pods, unless only some of several names do not exist.
func (s Selection) Find(ctx context.Context, sess *session.Session, args []string) (Found, error) {
	return (&finder{Selection: s, sess: sess}).find(ctx, args)
}

// Pods is Find for a selection that is not strict.
func (s Selection) Pods(ctx context.Context, sess *session.Session, args ...string) ([]*podspec.Desired, error) {
	found, err := s.Find(ctx, sess, args)
	return found.Pods, err
}

// Applied lists the applied pods that match the selection.
func (s Selection) Applied(ctx context.Context, sess *session.Session) (Found, error) {
	return (&finder{Selection: s, sess: sess}).allNow(ctx)
}

// Filter returns the pods of the namespace that match the selectors. It ignores status fields, because they need an
// observation.
func (s Selection) Filter(pods []*podspec.Desired, namespace string) ([]*podspec.Desired, error) {
	parsed, err := s.selectors()
	if err != nil {
		return nil, err
	}
	elsewhere := func(d *podspec.Desired) bool { return !s.AllNamespaces && d.Pod.Namespace != namespace }
	return parsed.matching(slices.DeleteFunc(pods, elsewhere)), nil
}

// Where describes the scope of a selection, for messages.
func (s Selection) Where(namespace string) string {
	text := "in namespace " + namespace
	if s.AllNamespaces {
		text = "in any namespace"
	}
	if s.Labels != "" {
		text += " with labels " + s.Labels
	}
	if s.Fields != "" {
		text += " with fields " + s.Fields
	}
	return text
}

// finder runs one search.
type finder struct {
	Selection
	sess *session.Session
	// recording replaces the runtime and its checkpoints if a snapshot is given.
	recording snapshot.Recording
}

func (f *finder) find(ctx context.Context, args []string) (Found, error) {
	manifests, names := f.split(args)
	if err := f.checkFlags(manifests, names); err != nil {
		return Found{}, err
	}
	if len(manifests) == 0 && len(names) == 0 {
		return f.allNow(ctx)
	}
	found, err := f.load(ctx, manifests)
	if err == nil {
		err = f.narrow(&found)
	}
	if err == nil {
		err = f.ofSet(&found)
	}
	if err == nil && f.For >= Delete {
		names, err = f.namedWorkloads(&found, names)
	}
	if err != nil || len(names) == 0 {
		return found, err
	}
	named, err := f.named(ctx, names)
	if len(named) == 0 {
		return Found{}, err
	}
	found.Pods = append(found.Pods, named...)
	return found, err
}

// split separates manifests from names.
func (s *Selection) split(args []string) (manifests, names []string) {
	manifests = slices.Clone(s.Files)
	for _, arg := range args {
		if input.IsManifest(arg) || s.Recursive && isDirectory(arg) {
			manifests = append(manifests, arg)
		} else {
			names = append(names, arg)
		}
	}
	return manifests, names
}

// isDirectory reports whether a name is also a directory here. With --recursive, the directory takes precedence over a
// pod of that name.
func isDirectory(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.IsDir()
}

// named finds pods by name, without duplicates. It returns the pods that exist even if others do not.
func (f *finder) named(ctx context.Context, names []string) ([]*podspec.Desired, error) {
	applied, err := f.applied()
	if err != nil {
		return nil, err
	}
	pods, names, err := f.podsOfKinds(applied, names)
	if err != nil {
		return nil, err
	}
	var errs []error
	for _, name := range names {
		d, err := Named(f.sess, applied, name)
		switch {
		case err != nil && f.recording == nil && (f.For == Show || f.For == List):
			d, err = f.unmanaged(ctx, applied, name, err)
		case err != nil && f.recording == nil:
			err = addLostHint(ctx, f.sess, err)
		}
		switch {
		case err != nil:
			errs = append(errs, err)
		case !slices.ContainsFunc(pods, func(other *podspec.Desired) bool { return other.Pod.UID == d.Pod.UID }):
			pods = append(pods, d)
		}
	}
	return pods, errors.Join(errs...)
}

// unmanaged finds a pod of the runtime that podctl has not applied.
func (f *finder) unmanaged(
	ctx context.Context, applied []*podspec.Desired, name string, notFound error,
) (*podspec.Desired, error) {
	if absent := (*state.NotFoundError)(nil); !errors.As(notFound, &absent) {
		return nil, notFound
	}
	engine, err := f.sess.Engine()
	if err != nil {
		return nil, fmt.Errorf("%w; looking for pods of other tools in the runtime: %w", notFound, err)
	}
	others, err := engine.Lister.Unmanaged(ctx, UIDs(applied))
	if err != nil {
		return nil, fmt.Errorf("%w; looking for pods of other tools in the runtime: %w", notFound, err)
	}
	d, err := state.FindPod(others, f.sess.Flags.Namespace, name)
	if absent := (*state.NotFoundError)(nil); errors.As(err, &absent) {
		err = notFound
	}
	return d, err
}

// allNow is all, filtered by the current status of the pods.
func (f *finder) allNow(ctx context.Context) (Found, error) {
	found, err := f.all()
	if err == nil {
		err = f.narrowByStatus(ctx, &found)
	}
	return found, err
}

// all lists the applied pods that match the selection. Every unreadable checkpoint counts as unreadable for the
// selection, because its namespace is unknown.
func (f *finder) all() (Found, error) {
	var found Found
	var applied []*podspec.Desired
	var err error
	if f.For >= Reach && f.recording == nil {
		var unreadable []error
		applied, unreadable, err = podsApplied(f.sess)
		found.Unreadable = errors.Join(unreadable...)
	} else {
		applied, err = f.applied()
	}
	if err != nil {
		return Found{}, err
	}
	found.Pods, err = f.Filter(applied, f.sess.Flags.Namespace)
	if err == nil && f.For >= Delete && !f.Selects() && f.recording == nil {
		err = f.addWorkloads(&found)
	}
	return found, err
}

// applied lists the applied pods from the checkpoints or the snapshot.
func (f *finder) applied() ([]*podspec.Desired, error) {
	if f.recording != nil {
		return f.recording.Applied(), nil
	}
	return Applied(f.sess)
}

func (f *finder) load(ctx context.Context, manifests []string) (Found, error) {
	if len(manifests) == 0 {
		return Found{}, nil
	}
	m, err := f.loader().Load(ctx, manifests...)
	if err != nil {
		return Found{}, err
	}
	f.sess.Loaded(slices.Concat(m.Pods, secretsOf(m.Objects), templatesOf(m.Workloads)))
	if err := m.Err(); err != nil {
		return Found{}, err
	}
	if f.For == Apply {
		for _, note := range document.GroupNotes(m.Notes()) {
			f.sess.IO.Note("note: %s", note)
		}
	}
	if f.For == Apply || f.SkipUnknown {
		for _, s := range m.Skipped {
			f.sess.IO.Note("%s", s)
		}
	}
	found := Found{Pods: m.Pods, Workloads: m.Workloads, Skipped: m.Skipped}
	found.Names, found.taken = namesOf(m)
	if f.For >= DeleteKinds && f.recording == nil {
		found.Objects = m.Objects
	}
	hasNothing := len(found.Pods)+len(found.Objects)+len(found.Workloads) == 0
	if hasNothing && !f.Prune && (len(m.Skipped) == 0 || !f.SkipUnknown) {
		return Found{}, HoldsNothing(manifests[0], m)
	}
	if err := CheckNamespace(f.sess, m); err != nil {
		return Found{}, err
	}
	if f.recording != nil {
		f.keyDigests(m.Pods)
		return found, nil
	}
	for _, w := range found.Workloads {
		f.sess.Workloads().Merge(w)
	}
	return found, nil
}

// HoldsNothing refuses manifests without any object for the command.
func HoldsNothing(manifest string, m *load.Manifest) error {
	text := manifest + ": contains no Pod"
	if len(m.Skipped) > 0 {
		text = fmt.Sprintf("%s: contains nothing that podctl applies, only %s; use --skip-unknown to accept it",
			manifest, document.Counted(len(m.Skipped), "skipped object"))
	}
	return &exit.CodeError{Code: exit.Refused, Err: errors.New(text)}
}

// loader returns the loader for the manifests. With a snapshot, the objects stored on its machine are unknown.
func (f *finder) loader() load.Loader {
	l := f.sess.Loader(f.Recursive, f.ConfigMaps...)
	l.Workloads, l.SkipUnknown, l.Store = f.For >= Delete, f.SkipUnknown, f.For >= DeleteKinds && f.recording == nil
	if f.recording != nil {
		l.Stored = nil
	}
	return l
}

// secretsOf returns the Secrets among objects, in the form of pods.
func secretsOf(objects []*podspec.Object) []*podspec.Desired {
	var found []*podspec.Desired
	for _, o := range objects {
		if o.Secret != nil {
			secrets := map[string]*v1.Secret{o.Secret.Name: o.Secret}
			found = append(found, &podspec.Desired{Objects: podspec.Objects{Secrets: secrets}})
		}
	}
	return found
}

// keyDigests adds the key of this machine, so that pods can be compared with its records. On another machine, or if the
// user may not read the key, the values of Secrets are not compared.
func (f *finder) keyDigests(pods []*podspec.Desired) {
	key, err := f.sess.Flags.Layout().DigestKey().Stored()
	if err != nil {
		return
	}
	for _, d := range pods {
		d.UseKey(key)
	}
}
