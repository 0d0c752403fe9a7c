package selection

import (
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/podctl/podctl/commands/exit"
	"github.com/podctl/podctl/commands/session"
	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/podspec/load"
	"github.com/podctl/podctl/runtime/sets"
	"github.com/podctl/podctl/runtime/state"
)

// RegisterSets defines --prune and --set.
func (s *Selection) RegisterSets(f *pflag.FlagSet) {
	f.BoolVar(&s.Prune, "prune", false,
		"Also delete objects of the set (--set or -l) that are no longer in the manifests")
	f.StringVar(&s.Set, "set", "", "Name of the set these manifests belong to")
}

// checkSets refuses a set without manifests, and --prune without a set.
func (s *Selection) checkSets(manifests bool, names []string) error {
	switch {
	case !s.Prune && s.Set == "":
		return nil
	case !manifests || len(names) > 0:
		return exit.Usagef("--prune and --set are for manifests, and cannot be used with --all or names")
	case s.Snapshot != "":
		return exit.Usagef("--prune and --set cannot be used with --snapshot")
	case s.Prune && (s.Set == "") == (s.Labels == ""):
		return exit.Usagef(
			"--prune needs either --set NAME or -l SELECTOR to identify the objects that belong together")
	}
	if wrong := validation.IsDNS1123Label(s.Set); s.Set != "" && len(wrong) > 0 {
		return exit.Usagef("--set: %s", strings.Join(wrong, "; "))
	}
	return nil
}

// Scope returns the extent of the set with these names in its manifests. A set belongs to the namespace of the command
// line, so the same manifests in two namespaces are two sets. Labels match in the namespaces of the manifests, as in
// kubectl.
func (s *Selection) Scope(namespace string, names []state.ObjectKey) (*sets.Scope, error) {
	if s.Set != "" {
		return &sets.Scope{Set: namespace + "/" + s.Set}, nil
	}
	parsed, err := s.selectors()
	if err != nil {
		return nil, err
	}
	scope := &sets.Scope{Labels: parsed.labels}
	for _, name := range names {
		if !slices.Contains(scope.Namespaces, name.Namespace) {
			scope.Namespaces = append(scope.Namespaces, name.Namespace)
		}
	}
	if len(names) == 0 {
		scope.Namespaces = []string{namespace}
	}
	return scope, nil
}

// ofSet marks the found objects as members of the set. For a set by labels, it prints which objects of the manifests do
// not belong to it.
func (f *finder) ofSet(found *Found) error {
	if f.Set != "" {
		set := f.sess.Flags.Namespace + "/" + f.Set
		for _, d := range found.Pods {
			d.Set = set
		}
		for _, w := range found.Workloads {
			w.Set = set
		}
		for _, o := range found.Objects {
			o.Set = set
		}
		return nil
	}
	if !f.Prune {
		return nil
	}
	here := (&sets.Content{Pods: found.Pods, Workloads: found.Workloads, Objects: found.Objects}).Names()
	if len(here) == 0 && len(found.Names) > 0 {
		return exit.Usagef(
			"no object in the manifests has the labels %s: --prune would delete all applied objects with these labels",
			f.Labels)
	}
	for _, name := range found.Names {
		if f.For == Apply && !slices.Contains(here, name) && !slices.Contains(found.taken, name) {
			f.sess.IO.Note("note: %s is not applied: it does not have the labels %s", name, f.Labels)
		}
	}
	return nil
}

// namesOf returns the keys of all objects in manifests, and those of the objects that their pods bring.
func namesOf(m *load.Manifest) (names, taken []state.ObjectKey) {
	for _, d := range slices.Concat(m.Pods, templatesOf(m.Workloads)) {
		own := d.Own()
		for _, name := range podspec.ReferredObjects(d.Pod) {
			if name.Kind == podspec.KindClaim || own.Has(name.Kind, name.Name) {
				taken = append(taken, state.ObjectKey{Namespace: d.Pod.Namespace, Kind: name.Kind, Name: name.Name})
			}
		}
	}
	return slices.Concat(contentOf(m).Names(), taken), taken
}

func contentOf(m *load.Manifest) *sets.Content {
	return &sets.Content{Pods: m.Pods, Workloads: m.Workloads, Objects: m.Objects}
}

// CheckNamespace refuses manifests with another namespace than that of the command line, as kubectl does, because the
// user may have confused them.
func CheckNamespace(sess *session.Session, m *load.Manifest) error {
	if !sess.Flags.NamespaceGiven {
		return nil
	}
	for _, name := range contentOf(m).Names() {
		if name.Namespace != sess.Flags.Namespace {
			return exit.Usagef("%s in the manifest is not in the namespace %s: "+
				"change the namespace in the manifest, or omit --namespace", name, sess.Flags.Namespace)
		}
	}
	return nil
}
