package selection

import (
	"github.com/podctl/podctl/commands/exit"
	"github.com/podctl/podctl/commands/session"
	"github.com/podctl/podctl/podspec/load"
	"github.com/podctl/podctl/runtime/controller"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/objects"
)

// CheckNamespace refuses pods and objects of manifests that name another namespace than the
// command line, as kubectl does: the user means another one.
func CheckNamespace(sess *session.Session, m *load.Manifest) error {
	if !sess.Flags.NamespaceGiven {
		return nil
	}
	for _, d := range m.Pods {
		if d.Pod.Namespace != sess.Flags.Namespace {
			return elsewhere(sess, "pod "+model.RefOf(d.Pod).String())
		}
	}
	for _, o := range m.Apart {
		if o.Meta().Namespace != sess.Flags.Namespace {
			return elsewhere(sess, objects.KeyOf(o).String())
		}
	}
	for _, w := range m.Workloads {
		if w.Meta().Namespace != sess.Flags.Namespace {
			return elsewhere(sess, controller.KeyOf(w).String())
		}
	}
	return nil
}

func elsewhere(sess *session.Session, what string) error {
	return exit.Usagef("%s of the manifest is not in the namespace %s: give the manifest that namespace, or leave out --namespace", what, sess.Flags.Namespace)
}
