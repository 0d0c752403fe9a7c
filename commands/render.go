package commands

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/commands/completion"
	"github.com/podctl/podctl/commands/exit"
	"github.com/podctl/podctl/commands/flags"
	"github.com/podctl/podctl/commands/selection"
	"github.com/podctl/podctl/commands/session"
	"github.com/podctl/podctl/commands/terminal"
	"github.com/podctl/podctl/commands/view"
	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/podspec/document"
	"github.com/podctl/podctl/podspec/load"
	"github.com/podctl/podctl/runtime/controller"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/render"
)

type renderOptions struct {
	files      []string
	recursive  bool
	configMaps []string
	output     string
	cri        bool
}

func newRender(sess *session.Session) *cobra.Command {
	o := &renderOptions{}
	cmd := &cobra.Command{
		Use:   "render [flags] MANIFEST...",
		Short: "Print pods with all defaults filled in",
		Long: "Print the pods of manifests as the API server would store them: " +
			"in their namespace, with all defaults filled in and\nold annotations as fields. " +
			"Values that only the server knows are missing: " +
			"times, the status, and a uid that the\nmanifest does not set. " +
			"Fields that podctl does not support are printed as well. " +
			"With --cri, print the messages for the\ncontainer runtime of this machine, " +
			"with digests instead of the values of Secrets. " +
			"No runtime is needed." +
			flags.ExitCodes("0 success", "1 error", "5 manifest refused", "130 interrupted"),
		Example: "  podctl render pod.yaml\n" +
			"  podctl render --cri -o json pod.yaml | jq .sandbox\n" +
			"  podctl render -o json pod.yaml | jq .spec.containers[0].imagePullPolicy",
		ValidArgsFunction: completion.Manifests,
		RunE:              flags.Run(sess, o, runRender),
	}
	f := cmd.Flags()
	flags.Files(cmd, &o.files, &o.recursive)
	flags.ConfigMaps(cmd, &o.configMaps)
	f.BoolVar(&o.cri, "cri", false,
		"Print the CRI messages, with $SANDBOX_IP, $IMAGE_ID and the like for values that only the runtime knows")
	f.VarP(flags.Format(&o.output), "output", "o", "Output format: yaml or json")
	return cmd
}

func runRender(ctx context.Context, sess *session.Session, o *renderOptions, args []string) error {
	sources := slices.Concat(o.files, args)
	if len(sources) == 0 {
		return exit.Usagef("render needs a manifest")
	}
	l := sess.Loader(o.recursive, o.configMaps...)
	l.Workloads = true // They are refused below by their names.
	m, err := l.Load(ctx, sources...)
	if err == nil {
		err = selection.CheckNamespace(sess, m)
	}
	if err != nil {
		return err
	}
	m.Problems = slices.DeleteFunc(m.Problems, func(p document.Problem) bool {
		return p.Class == document.ClassUnsupported && p.Path != "kind"
	})
	if err = m.Err(); err != nil {
		return err
	}
	if len(m.Workloads) > 0 {
		w := m.Workloads[0]
		return &exit.CodeError{Code: exit.Refused, Err: fmt.Errorf(
			"%s: render takes pods only: `podctl plan` shows the pods of %s", w.Source, controller.KeyOf(w),
		)}
	}
	var doc any
	if o.cri {
		if doc, err = criDocument(sess, m.Pods); err != nil {
			return &exit.CodeError{Code: exit.Refused, Err: err}
		}
	} else if doc, err = renderDocument(m.Pods); err != nil {
		return err
	}
	return terminal.WriteDocument(sess.IO.Out, cmp.Or(o.output, "yaml"), doc)
}

// criDocument returns the messages of one pod, or a list of them.
func criDocument(sess *session.Session, pods []*podspec.Desired) (any, error) {
	type document struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		*render.Messages
	}
	docs := make([]document, 0, len(pods))
	for _, d := range pods {
		messages, err := render.Render(d, sess.Flags.Layout(), sess.Flags.CgroupRoot)
		if err != nil {
			return nil, err
		}
		docs = append(docs, document{model.APIVersion, "CRIMessages", messages})
	}
	if len(docs) == 1 {
		return docs[0], nil
	}
	return view.List("CRIMessagesList", docs), nil
}

// renderDocument returns one pod as the API server would store it, or several as a v1.List.
func renderDocument(desired []*podspec.Desired) (any, error) {
	pods := make([]*v1.Pod, 0, len(desired))
	for _, d := range desired {
		pod, err := load.Stored(d)
		if err != nil {
			return nil, fmt.Errorf("pod %s: %w", model.RefOf(d.Pod), err)
		}
		pods = append(pods, pod)
	}
	if len(pods) == 1 {
		return pods[0], nil
	}
	return view.PodList(pods), nil
}
