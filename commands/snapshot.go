package commands

import (
	"bytes"
	"context"

	"github.com/spf13/cobra"

	"github.com/podctl/podctl/commands/completion"
	"github.com/podctl/podctl/commands/exit"
	"github.com/podctl/podctl/commands/flags"
	"github.com/podctl/podctl/commands/selection"
	"github.com/podctl/podctl/commands/session"
	"github.com/podctl/podctl/commands/terminal"
	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/snapshot"
)

func newSnapshot(sess *session.Session) *cobra.Command {
	s := &selection.Selection{For: selection.Reach}
	cmd := &cobra.Command{
		Use:   "snapshot [flags] [MANIFEST|POD...]",
		Short: "Write the observed state of pods as JSON",
		Long: "Write all input of a plan as one JSON document: " +
			"the state of the pods in the runtime, and podctl's records of them.\n" +
			"`plan --snapshot` and `get --snapshot` read it on any machine, without a runtime. " +
			"Values of Secrets are left out.\n" +
			"Without arguments, the snapshot has all pods that podctl applied in the namespace." +
			flags.ExitCodes("0 success", "1 error", "5 manifest refused", "130 interrupted"),
		Example:           "  podctl snapshot web > web.json\n  podctl plan pod.yaml --snapshot web.json",
		ValidArgsFunction: completion.Of(sess.Flags).Targets,
		RunE: func(cmd *cobra.Command, args []string) error {
			return runSnapshot(cmd.Context(), sess, *s, args)
		},
	}
	f := cmd.Flags()
	flags.Files(cmd, &s.Files, &s.Recursive)
	s.RegisterSelectors(f, "All namespaces (if no pod is named)")
	return cmd
}

func runSnapshot(ctx context.Context, sess *session.Session, s selection.Selection, args []string) error {
	found, err := s.Find(ctx, sess, args)
	if err != nil {
		return err
	}
	return exit.WithUnreadable(ctx, writeSnapshot(ctx, sess, found.Pods), found.Unreadable)
}

func writeSnapshot(ctx context.Context, sess *session.Session, pods []*podspec.Desired) error {
	engine, err := sess.Engine()
	if err != nil {
		return err
	}
	var recording snapshot.Recording
	recording, outcomes := selection.Look(pods, func(d *podspec.Desired) (*snapshot.Pod, error) {
		return engine.Observer.Snapshot(ctx, d)
	})
	unknown := selection.Outcome(ctx, outcomes)
	if unknown != nil && len(recording) == 0 {
		return unknown
	}
	var text bytes.Buffer
	if err = recording.Write(&text); err == nil {
		_, err = sess.IO.Out.Write(terminal.VisibleJSON(text.Bytes()))
	}
	return exit.Join(ctx, err, unknown)
}
