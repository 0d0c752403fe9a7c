package lifecycle

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/podctl/podctl/commands/completion"
	"github.com/podctl/podctl/commands/exit"
	"github.com/podctl/podctl/commands/flags"
	"github.com/podctl/podctl/commands/session"
)

// The exit codes of `podctl diff`, which are those of diff and of kubectl diff.
const (
	differs    = 1
	diffFailed = 2
)

// NewDiff is `podctl diff`.
func NewDiff(sess *session.Session) *cobra.Command {
	o := &planOptions{exitCode: true}
	cmd := &cobra.Command{
		Use:   "diff [flags] MANIFEST...",
		Short: "Show the plan of manifests, with the exit codes of kubectl diff",
		Long: "Show what the next sync pass would do to pods, as plan does, and exit with 1 if that is something." +
			flags.ExitCodes("0 no differences", "1 there is something to change, or it is held or pending", "2 error, or manifest refused", "130 interrupted"),
		Example:           "  podctl diff -f pod.yaml\n  helm template web ./chart | podctl diff -f -",
		ValidArgsFunction: completion.Of(sess.Flags).Targets,
		Annotations:       exit.OwnFailure(diffFailed),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 && !o.Manifests() {
				return exit.Usagef("diff needs a manifest")
			}
			err := runPlan(cmd.Context(), sess, o, args)
			if code := (*exit.CodeError)(nil); errors.As(err, &code) && code.Err == nil && (code.Code == exit.Pending || code.Code == exit.NotYet) {
				return exit.With(differs)
			}
			return err
		},
	}
	flags.Files(cmd, &o.Files, &o.Recursive)
	flags.SkipUnknown(cmd.Flags(), &o.SkipUnknown)
	cmd.Flags().StringVarP(&o.Labels, "selector", "l", "", "Only what has these labels, for example app=web,tier!=db")
	o.RegisterSets(cmd.Flags())
	return cmd
}
