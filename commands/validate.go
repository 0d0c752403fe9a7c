package commands

import (
	"context"
	"slices"

	"github.com/spf13/cobra"

	"github.com/podctl/podctl/commands/completion"
	"github.com/podctl/podctl/commands/exit"
	"github.com/podctl/podctl/commands/flags"
	"github.com/podctl/podctl/commands/selection"
	"github.com/podctl/podctl/commands/session"
	"github.com/podctl/podctl/commands/terminal"
	"github.com/podctl/podctl/podspec/document"
	"github.com/podctl/podctl/podspec/load"
	"github.com/podctl/podctl/runtime/admission"
	"github.com/podctl/podctl/runtime/controller"
	"github.com/podctl/podctl/runtime/machine"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/objects"
	"github.com/podctl/podctl/runtime/snapshot"
)

type validateOptions struct {
	files      []string
	recursive  bool
	configMaps []string
	// skipUnknown skips objects of kinds that podctl does not know.
	skipUnknown bool
	output      string
}

func newValidate(sess *session.Session) *cobra.Command {
	o := &validateOptions{}
	cmd := &cobra.Command{
		Use:   "validate [flags] MANIFEST...",
		Short: "Check manifests and report all problems",
		Long: "Check manifests as the API server would, and list the fields that have no effect in podctl. " +
			"Also report why a kubelet\non this machine would reject a pod that podctl runs. " +
			"No runtime is needed." +
			flags.ExitCodes("0 valid", "1 error", "5 manifest refused", "130 interrupted"),
		Example:           "  podctl validate pod.yaml\n  podctl validate -o json manifests/",
		ValidArgsFunction: completion.Manifests,
		RunE:              flags.Run(sess, o, runValidate),
	}
	f := cmd.Flags()
	flags.Files(cmd, &o.files, &o.recursive)
	flags.SkipUnknown(f, &o.skipUnknown)
	flags.ConfigMaps(cmd, &o.configMaps)
	f.VarP(flags.Output(&o.output, "json", "yaml"), "output", "o", "Output format: text, json or yaml")
	return cmd
}

func runValidate(ctx context.Context, sess *session.Session, o *validateOptions, args []string) error {
	sources := append(o.files, args...)
	if len(sources) == 0 {
		return exit.Usagef("validate needs a manifest")
	}
	l := sess.Loader(o.recursive, o.configMaps...)
	l.Workloads, l.SkipUnknown = true, o.skipUnknown
	m, err := l.Load(ctx, sources...)
	if err == nil {
		err = selection.CheckNamespace(sess, m)
	}
	if err != nil {
		return err
	}
	if terminal.IsDocument(o.output) {
		err = terminal.WriteDocument(sess.IO.Out, o.output, problemsDocument(m, admissionNotes(m)))
	} else {
		showProblems(sess, m)
	}
	switch {
	case err == nil && m.Err() != nil:
		return exit.With(exit.Refused)
	case err == nil && !o.skipUnknown && len(m.Skipped) > 0 && isEmpty(m):
		return selection.HoldsNothing(sources[0], m)
	}
	return err
}

// isEmpty reports whether manifests contain nothing to apply.
func isEmpty(m *load.Manifest) bool { return len(m.Pods)+len(m.Objects)+len(m.Workloads) == 0 }

func showProblems(sess *session.Session, m *load.Manifest) {
	for _, p := range m.Problems {
		sess.IO.Print("%s: %s", p.Class, p)
	}
	for _, n := range m.NoEffect {
		sess.IO.Print("no effect: %s", n)
	}
	for _, s := range m.Skipped {
		sess.IO.Print("%s", s)
	}
	if m.Err() != nil {
		return
	}
	for _, n := range admissionNotes(m) {
		sess.IO.Print("note: pod %s: %s", n.Pod, n.Detail)
	}
	for _, d := range m.Pods {
		sess.IO.Print("pod %s is valid (%s)", model.RefOf(d.Pod), d.Source)
	}
	for _, w := range m.Workloads {
		sess.IO.Print("%s is valid (%s)", controller.KeyOf(w), w.Source)
	}
	for _, o := range m.Objects {
		text := "%s is valid: apply stores it"
		if o.Service != nil {
			text = "%s is valid" // A Service needs no pod that names it.
		}
		sess.IO.Print(text, objects.KeyOf(o))
	}
	if isEmpty(m) {
		sess.IO.Print("contains nothing to apply")
	}
}

// podNote is a remark about a whole pod.
type podNote struct {
	Pod    model.PodRef `json:"pod"`
	Detail string       `json:"detail"`
}

// admissionNotes returns the reasons why a kubelet on this machine would reject pods that podctl runs.
func admissionNotes(m *load.Manifest) []podNote {
	notes := []podNote{}
	if m.Err() != nil || len(m.Pods)+len(m.Workloads) == 0 {
		return notes
	}
	node := machine.Node("/")
	facts := snapshot.MachineOf(&node)
	pods := slices.Clone(m.Pods)
	for _, w := range m.Workloads {
		pods = append(pods, w.Template)
	}
	for _, d := range pods {
		for _, text := range admission.Notes(d.Pod, &facts) {
			notes = append(notes, podNote{Pod: model.RefOf(d.Pod), Detail: text})
		}
	}
	return notes
}

func problemsDocument(m *load.Manifest, notes []podNote) any {
	return struct {
		APIVersion string             `json:"apiVersion"`
		Kind       string             `json:"kind"`
		Problems   []document.Problem `json:"problems"`
		NoEffect   []document.Note    `json:"noEffect"`
		Skipped    []document.Skipped `json:"skipped"`
		Notes      []podNote          `json:"notes"`
	}{
		APIVersion: model.APIVersion,
		Kind:       "Problems",
		Problems:   append([]document.Problem{}, m.Problems...),
		NoEffect:   append([]document.Note{}, m.NoEffect...),
		Skipped:    append([]document.Skipped{}, m.Skipped...),
		Notes:      notes,
	}
}
