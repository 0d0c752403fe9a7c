package commands

import (
	"bytes"
	"context"

	"github.com/spf13/cobra"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/snapshot"
)

func newSnapshot(g *globals) *cobra.Command {
	s := &selection{quiet: true, thorough: true}
	cmd := &cobra.Command{
		Use:   "snapshot [flags] [MANIFEST|POD...]",
		Short: "Write what is observed of pods as one JSON document",
		Long: "Write everything a plan is made of as one JSON document: what the runtime says of the pods, and what\n" +
			"podctl remembers of them. `plan --snapshot` and `get --snapshot` read it anywhere, without a runtime.\n" +
			"Values of Secrets are left out. Without arguments: every pod that podctl applied in the namespace." +
			exitCodes("0 done", "1 error", "5 refused manifest", "130 interrupted"),
		Example:           "  podctl snapshot web > web.json\n  podctl plan pod.yaml --snapshot web.json",
		ValidArgsFunction: g.completeTargets,
		RunE: func(cmd *cobra.Command, args []string) error {
			return g.withUnread(cmd.Context(), runSnapshot(cmd.Context(), g, *s, args))
		},
	}
	f := cmd.Flags()
	f.StringSliceVarP(&s.files, "filename", "f", nil, "Manifest: file, directory, URL or - (repeatable)")
	f.BoolVarP(&s.allNamespaces, "all-namespaces", "A", false, "Pods of all namespaces, when none is named")
	return cmd
}

func runSnapshot(ctx context.Context, g *globals, s selection, args []string) error {
	pods, err := g.desired(ctx, s, args)
	if err != nil {
		return err
	}
	engine, err := g.connect()
	if err != nil {
		return err
	}
	recording := make(snapshot.Recording, 0, len(pods))
	unknown := inTurn(ctx, pods, func(d *podspec.Desired) error {
		one, failure := engine.Observer.Snapshot(ctx, d)
		if failure == nil {
			recording = append(recording, one)
		}
		return failure
	})
	if unknown != nil && len(recording) == 0 {
		return unknown
	}
	var text bytes.Buffer
	if err = recording.Write(&text); err == nil {
		_, err = g.env.Out.Write(visibleJSON(text.Bytes()))
	}
	return together(ctx, []error{err, unknown})
}
