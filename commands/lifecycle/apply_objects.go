package lifecycle

import (
	"context"
	"encoding/json"
	"io"
	"strings"

	"github.com/podctl/podctl/commands/exit"
	"github.com/podctl/podctl/commands/selection"
	"github.com/podctl/podctl/commands/session"
	"github.com/podctl/podctl/commands/terminal"
	"github.com/podctl/podctl/commands/view"
	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/objects"
	"github.com/podctl/podctl/runtime/state"
)

// storeObjects stores what no pod of the manifests names, and says which pods take it next.
func (o *applyOptions) storeObjects(ctx context.Context, sess *session.Session, found *selection.Found) error {
	if len(found.Apart) == 0 {
		return nil
	}
	if o.plan != "" {
		return exit.Usagef("--plan executes a plan of pods: apply %s by itself", objects.KeyOf(found.Apart[0]))
	}
	applied, err := selection.Applied(sess)
	if err != nil {
		return err
	}
	changed, services := false, false
	err = sess.Objects().Put(ctx, found.Apart, func(c objects.Change) {
		users := usersBeside(c.Key, applied, found.Pods)
		changed = changed || c.Outcome != objects.Unchanged
		services = services || c.Key.Kind == podspec.KindService
		o.showStored(sess, &c, users)
	})
	if err != nil {
		return refusedObject(err)
	}
	if services {
		// Containers that start next find the names.
		if err := sess.SyncServices(ctx); err != nil {
			return err
		}
	}
	if changed && o.exitCode && o.wait == "" {
		return exit.With(exit.NotYet)
	}
	return nil
}

// refusedObject gives an object that cannot be stored as it is the exit code of a manifest that
// is refused.
func refusedObject(err error) error {
	if objects.IsRefusal(err) {
		return &exit.CodeError{Code: exit.Refused, Err: err}
	}
	return err
}

// showStored says what became of an object. Pods take it with their next pass, which is not
// this one.
func (o *applyOptions) showStored(sess *session.Session, c *objects.Change, users []*podspec.Desired) {
	noteObject(sess, c)
	if o.output == "json" {
		if text, err := json.Marshal(view.ObjectChangeOf(c, users)); err == nil {
			sess.IO.Out.Write(append(terminal.VisibleJSON(text), '\n')) //nolint:errcheck // a closed pipe ends the process
		}
		return
	}
	sess.IO.Print("%s %s", c.Key, c.Outcome)
	if c.Outcome != objects.Unchanged && len(users) > 0 && c.Key.Kind != podspec.KindClaim {
		sess.IO.Note("note: %s: taken by the next apply of %s", c.Key, podNames(users))
	}
}

// noteObject prints the notes about an object.
func noteObject(sess *session.Session, c *objects.Change) {
	for _, note := range c.Notes {
		sess.IO.Note("note: %s: %s", c.Key, note)
	}
}

// usersBeside are the applied pods that take an object, without those of this call.
func usersBeside(key state.ObjectKey, applied, called []*podspec.Desired) []*podspec.Desired {
	here := selection.UIDs(called)
	var users []*podspec.Desired
	for _, d := range objects.Users(key, applied) {
		if !here[d.Pod.UID] {
			users = append(users, d)
		}
	}
	return users
}

func podNames(pods []*podspec.Desired) string {
	names := make([]string, 0, len(pods))
	for _, d := range pods {
		names = append(names, "pod "+model.RefOf(d.Pod).String())
	}
	return strings.Join(names, ", ")
}

// planObjects says what would become of the objects that no pod of the manifests names. They
// count as stored from then on, and the applied pods that take one that changes are planned too.
func (o *planOptions) planObjects(sess *session.Session, observed *selection.Observed) ([]view.ObjectChange, error) {
	if len(observed.Apart) == 0 {
		return nil, nil
	}
	if o.save != "" {
		return nil, exit.Usagef("--save saves plans of pods: plan %s by itself", objects.KeyOf(observed.Apart[0]))
	}
	changes, err := sess.Objects().Changes(observed.Apart)
	if err != nil {
		return nil, refusedObject(err)
	}
	applied, err := selection.Applied(sess)
	if err != nil {
		return nil, err
	}
	sess.Objects().Pretend(observed.Apart)
	docs := make([]view.ObjectChange, 0, len(changes))
	for i := range changes {
		c := &changes[i]
		doc := view.ObjectChangeOf(c, usersBeside(c.Key, applied, nil))
		docs = append(docs, doc)
		noteObject(sess, c)
		if !terminal.IsDocument(o.output) {
			printFuture(sess, c, &doc)
		}
		if c.Outcome != objects.Unchanged {
			observed.Pods = append(observed.Pods, usersBeside(c.Key, applied, observed.Pods)...)
		}
	}
	return docs, nil
}

// printFuture says what would become of an object, and the values that would change.
func printFuture(sess *session.Session, c *objects.Change, doc *view.ObjectChange) {
	sess.IO.Print("%s", view.FutureOutcome(c))
	io.WriteString(sess.IO.Out, view.FutureTexts(doc, sess.IO.OutColors())) //nolint:errcheck // a closed pipe ends the process
}
