package selection

import (
	"errors"
	"slices"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/podctl/podctl/commands/exit"
	"github.com/podctl/podctl/commands/session"
	"github.com/podctl/podctl/runtime/objects"
	"github.com/podctl/podctl/runtime/state"
)

// Reaches reports whether the selection is for a namespace: that of the command, or all.
func (s *Selection) Reaches(sess *session.Session, namespace string) bool {
	return s.AllNamespaces || namespace == sess.Flags.Namespace
}

// AddStored names the stored workloads and objects of the kinds of targets, as far as the selection reaches and its labels match. The
// error says which ones could not be read.
func (s *Selection) AddStored(sess *session.Session, targets *Targets) error {
	selector, err := labels.Parse(s.Labels)
	if err != nil {
		return exit.Usagef("--selector: %v", err)
	}
	match := func(key state.ObjectKey) bool {
		return slices.Contains(targets.Kinds, key.Kind) && s.Reaches(sess, key.Namespace)
	}
	stored, err := sess.Objects().List(match)
	for _, one := range stored {
		if selector.Matches(labels.Set(one.Meta().Labels)) {
			targets.Objects = append(targets.Objects, objects.KeyOf(one))
		}
	}
	records, recordsErr := sess.Workloads().List(match)
	for _, r := range records {
		if selector.Matches(labels.Set(r.Workload.Meta().Labels)) {
			targets.Workloads = append(targets.Workloads, r.Key())
		}
	}
	return errors.Join(err, recordsErr)
}
