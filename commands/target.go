package commands

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/podspec/input"
	"github.com/podctl/podctl/podspec/load"
	"github.com/podctl/podctl/runtime"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/plan"
	"github.com/podctl/podctl/runtime/snapshot"
)

// selection is what a command line names: manifests, pods, or neither.
type selection struct {
	files []string
	// allNamespaces lifts the restriction to one namespace when nothing is named.
	allNamespaces bool
	// labels is a label selector; empty lets every pod through.
	labels string
	// quiet leaves out the notes on fields without effect.
	quiet bool
	// thorough is for what has to reach every pod: a journal that cannot be read is no
	// note but what the command ends with (unread).
	thorough bool
	// snapshot is the file that stands for the runtime, recording what is in it.
	snapshot  string
	recording snapshot.Recording
}

// observer is where plans and status come from: a runtime, or a recording.
type observer interface {
	Plan(ctx context.Context, d *podspec.Desired, opts plan.Options) (*plan.Plan, error)
	Pods(ctx context.Context, pods []*podspec.Desired) ([]*v1.Pod, error)
}

// observed loads what the arguments name, and finds where it is observed.
func (g *globals) observed(ctx context.Context, s *selection, args []string) ([]*podspec.Desired, observer, error) {
	if s.snapshot == "" {
		pods, err := g.desired(ctx, *s, args)
		if err != nil {
			return nil, nil, err
		}
		engine, err := g.connect()
		return pods, engine, err
	}
	recording, err := g.readRecording(ctx, s.snapshot)
	if err != nil {
		return nil, nil, err
	}
	s.recording = recording
	pods, err := g.desired(ctx, *s, args)
	return pods, recording, err
}

func (g *globals) readRecording(ctx context.Context, path string) (snapshot.Recording, error) {
	text, err := g.env.readFile(ctx, path)
	if err != nil {
		return nil, fmt.Errorf("reading the snapshot: %w", err)
	}
	recording, err := snapshot.Read(text)
	if err != nil {
		return nil, fmt.Errorf("reading the snapshot %s: %w", path, err)
	}
	return recording, nil
}

// desired loads what the arguments name. Without any it is every pod that podctl
// applied in the namespace. With an error there are no pods, except where of several names
// only some are not there.
func (g *globals) desired(ctx context.Context, s selection, args []string) ([]*podspec.Desired, error) {
	manifests := slices.Clone(s.files)
	var names []string
	for _, arg := range args {
		if input.IsManifest(arg) {
			manifests = append(manifests, arg)
		} else {
			names = append(names, arg)
		}
	}
	if len(manifests) == 0 && len(names) == 0 {
		return g.allApplied(s)
	}
	loaded, err := g.load(ctx, manifests, s)
	if err != nil || len(names) == 0 {
		return loaded, err
	}
	named, err := g.namedPods(ctx, s, names)
	if len(named) == 0 {
		return nil, err
	}
	return append(loaded, named...), err
}

// namedPods finds pods by what they were applied with. Those that there are it returns
// also when there are others that it does not find.
func (g *globals) namedPods(ctx context.Context, s selection, names []string) ([]*podspec.Desired, error) {
	applied, err := g.applied(s)
	if err != nil {
		return nil, err
	}
	var pods []*podspec.Desired
	var errs []error
	for _, name := range names {
		d, err := g.namedPod(applied, name)
		switch {
		case err == nil:
			pods = append(pods, d)
		case s.recording == nil:
			errs = append(errs, g.maybeLost(ctx, err))
		default:
			errs = append(errs, err)
		}
	}
	return pods, errors.Join(errs...)
}

func (g *globals) namedPod(applied []*podspec.Desired, name string) (*podspec.Desired, error) {
	d, err := runtime.FindPod(applied, g.namespace, name)
	return d, g.maybeElsewhere(name, err)
}

// maybeElsewhere adds to an error about a pod that was not found where it may be: in a
// directory of manifests that was taken for a name, or behind a journal that cannot be
// read, in which the pod's name stands.
func (g *globals) maybeElsewhere(name string, err error) error {
	if absent := (*runtime.NotFoundError)(nil); !errors.As(err, &absent) {
		return err
	}
	if _, statErr := os.Stat(name); statErr == nil {
		return fmt.Errorf("%w; if %[2]s is where its manifest lies, write ./%[2]s", err, name)
	}
	if _, unreadable, listErr := runtime.Applied(g.layout()); listErr != nil || len(unreadable) == 0 {
		return err
	}
	return fmt.Errorf("%w; it may be one whose journal cannot be read (see above): give its manifest in the place of its name", err)
}

// allApplied lists what podctl applied and the selection lets through. Whose namespace it
// was cannot be told of a journal that cannot be read, so each of them counts.
func (g *globals) allApplied(s selection) ([]*podspec.Desired, error) {
	if !s.thorough || s.recording != nil {
		applied, err := g.applied(s)
		if err != nil {
			return nil, err
		}
		return s.filter(applied, g.namespace)
	}
	applied, unreadable, err := runtime.Applied(g.layout())
	if err != nil {
		return nil, err
	}
	g.unread = errors.Join(unreadable...)
	return s.filter(desiredOf(applied), g.namespace)
}

// filter leaves the pods of the namespace whose labels match.
func (s *selection) filter(pods []*podspec.Desired, namespace string) ([]*podspec.Desired, error) {
	selector, err := labels.Parse(s.labels)
	if err != nil {
		return nil, usagef("--selector: %v", err)
	}
	return slices.DeleteFunc(pods, func(d *podspec.Desired) bool {
		return (!s.allNamespaces && d.Pod.Namespace != namespace) || !selector.Matches(labels.Set(d.Pod.Labels))
	}), nil
}

// applied lists what pods were applied with: by the journals, or by a snapshot.
func (g *globals) applied(s selection) ([]*podspec.Desired, error) {
	if s.recording != nil {
		return s.recording.Applied(), nil
	}
	applied, unreadable, err := runtime.Applied(g.layout())
	if err != nil {
		return nil, err
	}
	for _, one := range unreadable {
		g.noteOnce("note: %v", one)
	}
	return desiredOf(applied), nil
}

func desiredOf(applied []runtime.AppliedPod) []*podspec.Desired {
	pods := make([]*podspec.Desired, 0, len(applied))
	for _, p := range applied {
		pods = append(pods, p.Desired)
	}
	return pods
}

// load reads manifests, refuses what is wrong, and notes what has no effect.
func (g *globals) load(ctx context.Context, manifests []string, s selection) ([]*podspec.Desired, error) {
	if len(manifests) == 0 {
		return nil, nil
	}
	m, err := load.Load(ctx, input.Reader{Stdin: g.env.In}, manifests...)
	if err != nil {
		return nil, err
	}
	g.known = append(g.known, m.Pods...)
	if err := m.Err(); err != nil {
		return nil, err
	}
	if !s.quiet {
		for _, note := range m.NoEffect {
			g.note("note: %s", note)
		}
	}
	if len(m.Pods) == 0 {
		return nil, &codeError{code: exitRefused, err: fmt.Errorf("%s: holds no Pod", manifests[0])}
	}
	if err := g.checkNamespace(m.Pods); err != nil {
		return nil, err
	}
	if s.recording != nil {
		g.keyDigests(m.Pods)
	}
	return m.Pods, nil
}

// keyDigests lets pods be compared with what this machine has recorded. On another one,
// or for a user who may not read the key, the values of Secrets are not compared.
func (g *globals) keyDigests(pods []*podspec.Desired) {
	key, err := g.layout().StoredDigestKey()
	if err != nil {
		return
	}
	for _, d := range pods {
		d.UseKey(key)
	}
}

// checkNamespace refuses pods of another namespace than the command line says, as kubectl
// does: somebody means another pod.
func (g *globals) checkNamespace(pods []*podspec.Desired) error {
	for _, d := range pods {
		if g.namespaceGiven && d.Pod.Namespace != g.namespace {
			return usagef("pod %s of the manifest is not in the namespace %s: give the manifest that namespace, or leave out --namespace",
				model.RefOf(d.Pod), g.namespace)
		}
	}
	return nil
}

func uidsOf(pods []*podspec.Desired) map[types.UID]bool {
	uids := map[types.UID]bool{}
	for _, d := range pods {
		uids[d.Pod.UID] = true
	}
	return uids
}

// refs names the pods of a selection; a pod is found by its journal also when
// its manifest is gone.
func refs(pods []*podspec.Desired) []model.PodRef {
	out := make([]model.PodRef, 0, len(pods))
	for _, d := range pods {
		out = append(out, model.RefOf(d.Pod))
	}
	return out
}

// noteOnce is note for what would be said again with every look.
func (g *globals) noteOnce(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	g.notedLock.Lock()
	defer g.notedLock.Unlock()
	if !g.noted[text] {
		if g.noted == nil {
			g.noted = map[string]bool{}
		}
		g.noted[text] = true
		g.note("%s", text)
	}
}

// note writes a line beside the result, for people.
func (g *globals) note(format string, args ...any) {
	g.lines.Lock()
	defer g.lines.Unlock()
	fmt.Fprintln(g.env.Err, printableLines(fmt.Sprintf(format, args...))) //nolint:errcheck // there is nowhere else to say it
}

// print writes a line of the result.
func (g *globals) print(format string, args ...any) {
	g.lines.Lock()
	defer g.lines.Unlock()
	fmt.Fprintln(g.env.Out, printableLines(fmt.Sprintf(format, args...))) //nolint:errcheck // a closed pipe ends the process
}

// namesOf lists a pod's containers for people.
func namesOf(d *podspec.Desired) string {
	var names []string
	for _, ref := range podspec.Containers(d.Pod) {
		names = append(names, ref.Name)
	}
	return strings.Join(names, ", ")
}
