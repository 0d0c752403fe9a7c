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
	o, cluster := &planOptions{exitCode: true}, false
	cmd := &cobra.Command{
		Use:   "diff [flags] MANIFEST... | diff --cluster",
		Short: "Show the plan for manifests, or the differences between a node and its cluster",
		Long: "Show the plan for manifests, and exit with 1 if something would change.\n" +
			"\n" +
			"With --cluster, compare the pods of this node with those of the API server: pods that only one of them " +
			"has,\nother versions, statuses that were not sent yet, and deletions. The agent of the node must run." +
			flags.ExitCodes(
				"0 no differences",
				"1 something would change, or is held or pending",
				"2 error, or manifest refused",
				"130 interrupted",
			),
		Example: "  podctl diff -f pod.yaml\n  helm template web ./chart | podctl diff -f -\n" +
			"  podctl diff --cluster",
		ValidArgsFunction: completion.Of(sess.Flags).Targets,
		Annotations:       exit.OwnFailure(diffFailed),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch given := len(args) > 0 || o.Manifests(); {
			case cluster && given:
				return exit.Usagef("--cluster compares all pods of the node, and takes no manifests")
			case cluster:
				return diffCluster(cmd.Context(), sess, o.output)
			case !given:
				return exit.Usagef("diff needs a manifest, or --cluster")
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
	cmd.Flags().BoolVar(&cluster, "cluster", false, "Compare the pods of this node with those of the API server")
	cmd.Flags().VarP(flags.Output(&o.output, "json", "yaml"), "output", "o", "Output format: text, json or yaml")
	for _, other := range []string{"selector", "set"} {
		cmd.MarkFlagsMutuallyExclusive("cluster", other)
	}
	return cmd
}
