package lifecycle

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/podctl/podctl/commands/completion"
	"github.com/podctl/podctl/commands/exit"
	"github.com/podctl/podctl/commands/flags"
	"github.com/podctl/podctl/commands/session"
)

// Exit codes of `podctl diff`, the same as those of diff and kubectl diff.
const (
	differs    = 1
	diffFailed = 2
)

// NewDiff returns the command `podctl diff`.
func NewDiff(sess *session.Session) *cobra.Command {
	o := &planOptions{exitCode: true}
	cmd := &cobra.Command{
		Use:   "diff [flags] MANIFEST...",
		Short: "Show the plan for manifests, with the exit codes of kubectl diff",
		Long: "Show the plan for manifests, and exit with 1 if something would change." +
			flags.ExitCodes(
				"0 no differences",
				"1 something would change, or is held or pending",
				"2 error, or manifest refused",
				"130 interrupted",
			),
		Example:           "  podctl diff -f pod.yaml\n  helm template web ./chart | podctl diff -f -",
		ValidArgsFunction: completion.Of(sess.Flags).Targets,
		Annotations:       exit.OwnFailure(diffFailed),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 && !o.Manifests() {
				return exit.Usagef("diff needs a manifest")
			}
			err := runPlan(cmd.Context(), sess, o, args)
			code := (*exit.CodeError)(nil)
			if !errors.As(err, &code) || code.Err != nil {
				return err
			}
			if code.Code == exit.Pending || code.Code == exit.NotYet {
				return exit.With(differs)
			}
			return err
		},
	}
	flags.Files(cmd, &o.Files, &o.Recursive)
	flags.SkipUnknown(cmd.Flags(), &o.SkipUnknown)
	cmd.Flags().StringVarP(&o.Labels, "selector", "l", "",
		"Only objects with these labels, for example app=web,tier!=db")
	o.RegisterSets(cmd.Flags())
	return cmd
}
