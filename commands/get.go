package commands

import (
	"context"

	"github.com/spf13/cobra"
	v1 "k8s.io/api/core/v1"
)

type getOptions struct {
	selection
	output string
	// named tells that one pod was asked for by name.
	named bool
}

func newGet(g *globals) *cobra.Command {
	o := &getOptions{}
	cmd := &cobra.Command{
		Use:     "get [flags] [MANIFEST|POD...]",
		Aliases: []string{"ps"},
		Short:   "List pods with their status",
		Long: "List the pods that podctl applied, with the status a kubelet would report." +
			exitCodes("0 done", "1 error", "5 refused manifest"),
		Example: "  podctl get\n  podctl get -A -o wide\n  podctl get web -o yaml",
		RunE:    func(cmd *cobra.Command, args []string) error { return runGet(cmd.Context(), g, o, args) },
	}
	f := cmd.Flags()
	f.StringSliceVarP(&o.files, "filename", "f", nil, "Manifest: file, directory, URL or - (repeatable)")
	f.BoolVarP(&o.allNamespaces, "all-namespaces", "A", false, "Pods of all namespaces")
	f.StringVar(&o.snapshot, "snapshot", "", "Show what a snapshot has, without a runtime")
	f.VarP(outputFlag(&o.output, "wide", "json", "yaml", "name"), "output", "o", "Output format: text, wide, json, yaml or name")
	return cmd
}

func runGet(ctx context.Context, g *globals, o *getOptions, args []string) error {
	o.quiet, o.named = true, len(args) == 1
	desired, world, err := g.observed(ctx, &o.selection, args)
	if err != nil {
		return err
	}
	if len(desired) == 0 && o.output != "json" && o.output != "yaml" {
		g.note("No pods in namespace %s.", g.namespace)
		return nil
	}
	pods, err := world.Pods(ctx, desired)
	if err != nil {
		return err
	}
	return g.showPods(o, pods)
}

func (g *globals) showPods(o *getOptions, pods []*v1.Pod) error {
	switch o.output {
	case "json", "yaml":
		if o.named && len(pods) == 1 {
			return writeDocument(g.env.Out, o.output, pods[0])
		}
		return writeDocument(g.env.Out, o.output, podList(pods))
	case "name":
		for _, pod := range pods {
			g.print("pod/%s", pod.Name)
		}
		return nil
	}
	v := &podView{now: g.env.Now(), wide: o.output == "wide", namespaces: o.allNamespaces}
	return table(g.env.Out, v.header(), v.rows(pods))
}
