package commands

import (
	"context"
	"slices"

	"github.com/spf13/cobra"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/podspec/document"
	"github.com/podctl/podctl/podspec/input"
	"github.com/podctl/podctl/podspec/load"
	"github.com/podctl/podctl/runtime"
	"github.com/podctl/podctl/runtime/model"
)

type renderOptions struct {
	files  []string
	output string
	cri    bool
}

func newRender(g *globals) *cobra.Command {
	o := &renderOptions{}
	cmd := &cobra.Command{
		Use:   "render [flags] MANIFEST...",
		Short: "Print pods with every default filled in",
		Long: "Print the pods of manifests as the API server would store them: with every default filled in.\n" +
			"No runtime is needed, and fields that podctl cannot honour are printed as well." +
			" With --cri:\nthe messages for the container runtime of this machine, digests standing for the values of Secrets." +
			exitCodes("0 done", "1 error", "5 invalid", "130 interrupted"),
		Example:           "  podctl render pod.yaml\n  podctl render --cri -o json pod.yaml | jq .sandbox\n  podctl render -o json pod.yaml | jq .spec.containers[0].imagePullPolicy",
		ValidArgsFunction: completeManifests,
		RunE:              func(cmd *cobra.Command, args []string) error { return runRender(cmd.Context(), g, o, args) },
	}
	f := cmd.Flags()
	f.StringSliceVarP(&o.files, "filename", "f", nil, "Manifest: file, directory, URL or - (repeatable)")
	f.BoolVar(&o.cri, "cri", false, "Print the messages that the container runtime would be sent; what only it can tell is $SANDBOX_IP, $IMAGE_ID and the like")
	f.VarP(&choice{value: &o.output, allowed: []string{"yaml", "json"}, start: "yaml"}, "output", "o", "Output format: yaml or json")
	return cmd
}

func runRender(ctx context.Context, g *globals, o *renderOptions, args []string) error {
	sources := slices.Concat(o.files, args)
	if len(sources) == 0 {
		return usagef("render needs a manifest")
	}
	m, err := load.Load(ctx, input.Reader{Stdin: g.env.In}, sources...)
	if err != nil {
		return err
	}
	m.Problems = slices.DeleteFunc(m.Problems, func(p document.Problem) bool { return p.Class == document.ClassUnsupported })
	if err := m.Err(); err != nil {
		return err
	}
	format := o.output
	if format == "" {
		format = "yaml"
	}
	if o.cri {
		doc, err := g.criDocument(m.Pods)
		if err != nil {
			return &codeError{code: exitRefused, err: err}
		}
		return writeDocument(g.env.Out, format, doc)
	}
	return writeDocument(g.env.Out, format, renderDocument(m.Pods))
}

// criDocument is the messages of one pod, or a list of them.
func (g *globals) criDocument(pods []*podspec.Desired) (any, error) {
	type document struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		*runtime.Messages
	}
	docs := make([]document, 0, len(pods))
	for _, d := range pods {
		messages, err := runtime.Render(d, g.layout(), g.cgroupRoot)
		if err != nil {
			return nil, err
		}
		docs = append(docs, document{model.APIVersion, "CRIMessages", messages})
	}
	if len(docs) == 1 {
		return docs[0], nil
	}
	return struct {
		APIVersion string     `json:"apiVersion"`
		Kind       string     `json:"kind"`
		Items      []document `json:"items"`
	}{model.APIVersion, "CRIMessagesList", docs}, nil
}

// renderDocument is one pod as it is, several as a v1.List.
func renderDocument(desired []*podspec.Desired) any {
	pods := make([]*v1.Pod, 0, len(desired))
	for _, d := range desired {
		pods = append(pods, d.AsWritten())
	}
	if len(pods) == 1 {
		return pods[0]
	}
	return podList(pods)
}

// podList is pods as a v1.List, as kubectl prints them.
func podList(pods []*v1.Pod) any {
	if pods == nil {
		pods = []*v1.Pod{}
	}
	return struct {
		metav1.TypeMeta `json:",inline"`
		Items           []*v1.Pod `json:"items"`
	}{metav1.TypeMeta{APIVersion: "v1", Kind: "List"}, pods}
}
