package commands

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/podctl/podctl/podspec/document"
	"github.com/podctl/podctl/podspec/input"
	"github.com/podctl/podctl/podspec/load"
	"github.com/podctl/podctl/runtime/model"
)

type validateOptions struct {
	files  []string
	output string
}

func newValidate(g *globals) *cobra.Command {
	o := &validateOptions{}
	cmd := &cobra.Command{
		Use:   "validate [flags] MANIFEST...",
		Short: "Check manifests, all problems at once",
		Long: "Check manifests as the API server would, and name the fields that have no effect here.\n" +
			"No runtime is needed." + exitCodes("0 accepted", "1 error", "5 refused", "130 interrupted"),
		Example:           "  podctl validate pod.yaml\n  podctl validate -o json manifests/",
		ValidArgsFunction: completeManifests,
		RunE:              func(cmd *cobra.Command, args []string) error { return runValidate(cmd.Context(), g, o, args) },
	}
	f := cmd.Flags()
	f.StringSliceVarP(&o.files, "filename", "f", nil, "Manifest: file, directory, URL or - (repeatable)")
	f.VarP(outputFlag(&o.output, "json", "yaml"), "output", "o", "Output format: text, json or yaml")
	return cmd
}

func runValidate(ctx context.Context, g *globals, o *validateOptions, args []string) error {
	sources := append(o.files, args...)
	if len(sources) == 0 {
		return usagef("validate needs a manifest")
	}
	m, err := load.Load(ctx, input.Reader{Stdin: g.env.In}, sources...)
	if err != nil {
		return err
	}
	if isDocument(o.output) {
		err = writeDocument(g.env.Out, o.output, problemsDocument(m))
	} else {
		g.showProblems(m)
	}
	if err == nil && m.Err() != nil {
		return withCode(exitRefused)
	}
	return err
}

func (g *globals) showProblems(m *load.Manifest) {
	for _, p := range m.Problems {
		g.print("%s: %s", p.Class, p)
	}
	for _, n := range m.NoEffect {
		g.print("no effect: %s", n)
	}
	if m.Err() != nil {
		return
	}
	for _, d := range m.Pods {
		g.print("pod %s is valid (%s)", model.RefOf(d.Pod), d.Source)
	}
	if len(m.Pods) == 0 {
		g.print("no pod in it")
	}
}

func problemsDocument(m *load.Manifest) any {
	doc := struct {
		APIVersion string             `json:"apiVersion"`
		Kind       string             `json:"kind"`
		Problems   []document.Problem `json:"problems"`
		NoEffect   []document.Note    `json:"noEffect"`
	}{model.APIVersion, "Problems", m.Problems, m.NoEffect}
	if doc.Problems == nil {
		doc.Problems = []document.Problem{}
	}
	if doc.NoEffect == nil {
		doc.NoEffect = []document.Note{}
	}
	return doc
}
