package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/podctl/podctl/commands/exit"
	"github.com/podctl/podctl/commands/selection"
	"github.com/podctl/podctl/commands/session"
	"github.com/podctl/podctl/commands/terminal"
	"github.com/podctl/podctl/commands/view"
	"github.com/podctl/podctl/podspec/load"
	"github.com/podctl/podctl/runtime/state"
	"github.com/podctl/podctl/runtime/why"
)

// diffCluster compares the pods of this node with those of the API server, which the agent knows.
func diffCluster(ctx context.Context, sess *session.Session, output string) error {
	// The API server is read first: a pod that it gets in between is then not reported as missing here.
	remote, err := sess.Agent().ClusterPods(ctx)
	if err != nil {
		return err
	}
	switch {
	case remote.Stale != "" && remote.AsOf.IsZero():
		return fmt.Errorf("the API server did not return the pods: %s; this agent has never got any", remote.Stale)
	case remote.Stale != "":
		sess.IO.Note("note: the API server did not return the pods: %s; the watched pods are shown, as of %s",
			remote.Stale, remote.AsOf.Local().Format(time.DateTime))
	}
	locals, unreadable, err := localPods(ctx, sess)
	if err != nil {
		return err
	}
	found := why.Compare(sess.IO.Now(), locals, remote, load.FromAPI)
	switch {
	case terminal.IsDocument(output):
		err = terminal.WriteDocument(sess.IO.Out, output, view.List("ClusterDifferenceList", found))
	case len(found) == 0:
		sess.IO.Print("No differences: this node has the pods of the API server.")
	default:
		err = view.WriteDifferences(sess.IO.Out, found)
	}
	switch {
	case err != nil || unreadable != nil:
		return errors.Join(err, unreadable)
	case len(found) > 0:
		return exit.With(differs)
	}
	return nil
}

// localPods returns the pods of the API server on this node, and the pods of other sources that the agent keeps.
func localPods(ctx context.Context, sess *session.Session) (locals []why.Local, unreadable, err error) {
	applied, errs, err := state.Applied(sess.Flags.Layout())
	if err != nil {
		return nil, nil, err
	}
	engine, err := sess.Engine()
	if err != nil {
		return nil, nil, err
	}
	kept := sess.AgentPods(ctx)
	applied = slices.DeleteFunc(applied, func(p state.AppliedPod) bool {
		return kept[p.Desired.Pod.UID] == nil && !p.Desired.FromCluster()
	})
	pods, unknown := engine.Lister.List(ctx, selection.DesiredOf(applied))
	for i, p := range applied {
		l := why.Local{Desired: p.Desired, Ends: p.Checkpoint.Leaving() != nil}
		if pods != nil {
			l.Status = pods[i]
		}
		locals = append(locals, l)
	}
	return locals, errors.Join(append(errs, unknown)...), nil
}
