package lifecycle

import (
	"context"
	"io"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podctl/podctl/commands/exit"
	"github.com/podctl/podctl/commands/selection"
	"github.com/podctl/podctl/commands/session"
	"github.com/podctl/podctl/commands/view"
	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/controller"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/objects"
	"github.com/podctl/podctl/runtime/state"
)

// storeObjects stores the objects of the manifests, and prints which other pods use them in their next pass.
func (o *applyOptions) storeObjects(ctx context.Context, sess *session.Session, found *selection.Found) error {
	if len(found.Objects) == 0 {
		return nil
	}
	if o.plan != "" {
		if err := o.checkSaved(ctx, sess, found); err != nil {
			return err
		}
	}
	applied, err := selection.Applied(sess)
	if err != nil {
		return err
	}
	changed, services := false, false
	err = sess.Objects().Put(ctx, found.Objects, func(c objects.Change) {
		users := slices.DeleteFunc(otherUsers(c.Key, applied, found.Pods), func(d *podspec.Desired) bool {
			owns := func(w *podspec.Workload) bool { return controller.OwnsPod(controller.KeyOf(w), d) }
			return slices.ContainsFunc(found.Workloads, owns)
		})
		changed = changed || c.Outcome != objects.Unchanged
		services = services || c.Key.Kind == podspec.KindService
		o.showStored(sess, &c, users)
	})
	if err != nil {
		return refusedObject(err)
	}
	if services {
		// New containers get the names of the Services from synced files.
		if err := sess.SyncServices(ctx); err != nil {
			return err
		}
	}
	if changed && o.exitCode && o.wait == "" {
		return exit.With(exit.NotYet)
	}
	return nil
}

// checkSaved checks a saved plan before the objects are stored, so that podctl stores nothing for a refused plan. The
// check assumes that the objects are stored, because the pods use them and the plan depends on them.
func (o *applyOptions) checkSaved(ctx context.Context, sess *session.Session, found *selection.Found) error {
	if other := unnamed(found); other != nil {
		return exit.Usagef("--plan executes plans of pods only: apply %s separately", objects.KeyOf(other))
	}
	engine, err := sess.Engine()
	if err != nil {
		return err
	}
	sess.Objects().Pretend(found.Objects)
	defer sess.Objects().Pretend(nil)
	for _, d := range found.Pods {
		one, err := o.saved.of(d)
		if err == nil {
			err = engine.Pods.CheckSaved(ctx, d, o.planning(), one)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// unnamed returns an object that no pod of the manifests names; nil if there is none.
func unnamed(found *selection.Found) *podspec.Object {
	for _, o := range found.Objects {
		if len(objects.Users(objects.KeyOf(o), found.Pods)) == 0 {
			return o
		}
	}
	return nil
}

// refusedObject sets the exit code of a refused manifest if the object cannot be stored.
func refusedObject(err error) error {
	if objects.IsRefusal(err) {
		return &exit.CodeError{Code: exit.Refused, Err: err}
	}
	return err
}

// showStored prints the result for an object. The users are pods outside this call, which use the object in their next
// pass.
func (o *applyOptions) showStored(sess *session.Session, c *objects.Change, users []*podspec.Desired) {
	noteObject(sess, c)
	if o.output == "json" {
		view.Line(sess.IO, view.ObjectChangeOf(c, users))
		return
	}
	sess.IO.Print("%s %s", c.Key, c.Outcome)
	if c.Outcome != objects.Unchanged && len(users) > 0 && c.Key.Kind != podspec.KindClaim {
		sess.IO.Note("note: %s: used from the next apply of %s", c.Key, userNames(users))
	}
}

// noteObject prints the notes about an object.
func noteObject(sess *session.Session, c *objects.Change) {
	for _, note := range c.Notes {
		sess.IO.Note("note: %s: %s", c.Key, note)
	}
}

// otherUsers returns the applied pods that use an object, without the pods of this call.
func otherUsers(key state.ObjectKey, applied, called []*podspec.Desired) []*podspec.Desired {
	here := selection.UIDs(called)
	var users []*podspec.Desired
	for _, d := range objects.Users(key, applied) {
		if !here[d.Pod.UID] {
			users = append(users, d)
		}
	}
	return users
}

// userNames lists pods by name. Pods of a workload are listed as the workload.
func userNames(pods []*podspec.Desired) string {
	var names []string
	for _, d := range pods {
		name := "pod " + model.RefOf(d.Pod).String()
		if owner := metav1.GetControllerOfNoCopy(d.Pod); owner != nil {
			name = strings.ToLower(owner.Kind) + " " + d.Pod.Namespace + "/" + owner.Name
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return strings.Join(names, ", ")
}

// planObjects returns the changes to the objects of the manifests. The plans that follow assume that the objects are
// stored. planObjects also adds applied pods that use a changed object.
func (o *planOptions) planObjects(sess *session.Session, observed *selection.Observed) ([]view.ObjectChange, error) {
	if len(observed.Objects) == 0 {
		return nil, nil
	}
	if other := unnamed(&observed.Found); other != nil && o.save != "" {
		return nil, exit.Usagef("--save saves plans of pods only: plan %s separately", objects.KeyOf(other))
	}
	changes, err := sess.Objects().Changes(observed.Objects)
	if err != nil {
		return nil, refusedObject(err)
	}
	applied, err := selection.Applied(sess)
	if err != nil {
		return nil, err
	}
	sess.Objects().Pretend(observed.Objects)
	docs := make([]view.ObjectChange, 0, len(changes))
	var users []*podspec.Desired
	for i := range changes {
		c := &changes[i]
		doc := view.ObjectChangeOf(c, otherUsers(c.Key, applied, nil))
		docs = append(docs, doc)
		noteObject(sess, c)
		if o.isText() {
			printFuture(sess, c, &doc)
		}
		if c.Outcome != objects.Unchanged {
			users = append(users, otherUsers(c.Key, applied, slices.Concat(observed.Pods, users))...)
		}
	}
	return docs, addUsers(sess, observed, users)
}

// addUsers also plans the pods that use an object. For a pod of a workload it plans the workload, because the rollout
// decides when the pod follows.
func addUsers(sess *session.Session, observed *selection.Observed, users []*podspec.Desired) error {
	if len(users) == 0 {
		return nil
	}
	records, err := sess.Workloads().List(func(state.ObjectKey) bool { return true })
	if err != nil {
		return err
	}
	planned := map[state.ObjectKey]bool{}
	for _, w := range observed.Workloads {
		planned[controller.KeyOf(w)] = true
	}
	for _, d := range users {
		i := slices.IndexFunc(records, func(r *controller.Record) bool { return controller.OwnsPod(r.Key(), d) })
		switch {
		case i < 0:
			observed.Pods = append(observed.Pods, d)
		case !planned[records[i].Key()]:
			planned[records[i].Key()] = true
			observed.Workloads = append(observed.Workloads, records[i].Workload)
		}
	}
	return nil
}

// printFuture prints the outcome for an object and the values that would change.
func printFuture(sess *session.Session, c *objects.Change, doc *view.ObjectChange) {
	sess.IO.Print("%s", view.FutureOutcome(c))
	texts := view.FutureTexts(doc, sess.IO.OutColors())
	io.WriteString(sess.IO.Out, texts) //nolint:errcheck // a closed pipe ends the process
}
