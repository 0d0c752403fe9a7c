package commands

import (
	"context"
	"fmt"
	"slices"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime"
	"github.com/podctl/podctl/runtime/plan"
)

// selection is what a command line names: manifests, pods, or neither.
type selection struct {
	files []string
	// allNamespaces lifts the restriction to one namespace when nothing is named.
	allNamespaces bool
	// quiet leaves out the notes on fields without effect.
	quiet bool
}

// desired loads what the arguments name. Without any it is every pod that podctl
// applied in the namespace.
func (g *globals) desired(ctx context.Context, s selection, args []string) ([]*podspec.Desired, error) {
	manifests := slices.Clone(s.files)
	var pods []*podspec.Desired
	for _, arg := range args {
		if podspec.IsManifest(arg) {
			manifests = append(manifests, arg)
			continue
		}
		found, err := runtime.FindApplied(g.layout(), g.namespace, arg)
		if err != nil {
			return nil, err
		}
		pods = append(pods, found.Desired)
	}
	if len(manifests) == 0 && len(args) == 0 {
		return g.allApplied(s)
	}
	loaded, err := g.load(ctx, manifests, s)
	return append(loaded, pods...), err
}

func (g *globals) allApplied(s selection) ([]*podspec.Desired, error) {
	applied, unreadable, err := runtime.Applied(g.layout())
	if err != nil {
		return nil, err
	}
	for _, one := range unreadable {
		g.note("note: %v", one)
	}
	var pods []*podspec.Desired
	for _, p := range applied {
		if s.allNamespaces || p.Desired.Pod.Namespace == g.namespace {
			pods = append(pods, p.Desired)
		}
	}
	return pods, nil
}

// load reads manifests, refuses what is wrong, and notes what has no effect.
func (g *globals) load(ctx context.Context, manifests []string, s selection) ([]*podspec.Desired, error) {
	if len(manifests) == 0 {
		return nil, nil
	}
	m, err := podspec.Loader{Stdin: g.env.In}.Load(ctx, manifests...)
	if err != nil {
		return nil, err
	}
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
	return m.Pods, nil
}

// refs names the pods of a selection; a pod is found by its journal also when
// its manifest is gone.
func refs(pods []*podspec.Desired) []plan.PodRef {
	out := make([]plan.PodRef, 0, len(pods))
	for _, d := range pods {
		out = append(out, plan.RefOf(d.Pod))
	}
	return out
}

// note writes a line beside the result, for people.
func (g *globals) note(format string, args ...any) {
	fmt.Fprintln(g.env.Err, printable(fmt.Sprintf(format, args...))) //nolint:errcheck // there is nowhere else to say it
}

// print writes a line of the result.
func (g *globals) print(format string, args ...any) {
	fmt.Fprintln(g.env.Out, printable(fmt.Sprintf(format, args...))) //nolint:errcheck // a closed pipe ends the process
}
