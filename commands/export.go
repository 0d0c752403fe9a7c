package commands

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/model"
)

func newExport(g *globals) *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "export [flags] POD",
		Short: "Print a pod's manifest for a kubelet to take the pod over",
		Long: "Print the manifest of a pod that podctl applied, with its uid: as a static pod of a kubelet on the same\n" +
			"runtime, the pod is taken over as it runs. What keeps a kubelet from that is said, field by field." +
			exitCodes("0 printed", "1 error", "3 printed, and a kubelet could not take the pod over without a restart", "5 refused manifest",
				"130 interrupted"),
		Example:           "  podctl export web > /etc/kubernetes/manifests/web.yaml",
		Args:              onePodArg,
		ValidArgsFunction: g.completePod,
		RunE: func(cmd *cobra.Command, args []string) error {
			d, err := g.onePod(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return g.export(d.Pod, output)
		},
	}
	cmd.Flags().VarP(&choice{value: &output, allowed: []string{"yaml", "json"}, start: "yaml"}, "output", "o", "Output format: yaml or json")
	return cmd
}

func (g *globals) export(pod *v1.Pod, output string) error {
	if output == "" {
		output = "yaml"
	}
	if err := writeDocument(g.env.Out, output, pod); err != nil {
		return err
	}
	obstacles := podspec.TakeoverProblems(pod)
	for _, o := range obstacles {
		g.note("note: %s", o)
	}
	for _, text := range takeoverNotes(pod, g.stateDir, g.cgroupRoot) {
		g.note("note: %s", text)
	}
	if len(obstacles) > 0 {
		g.note("pod %s cannot be taken over as it is (docs/kubernetes.md)", model.RefOf(pod))
		return withCode(exitNotYet)
	}
	return nil
}

// takeoverNotes say how the kubelet has to be started.
func takeoverNotes(pod *v1.Pod, stateDir, cgroupRoot string) []string {
	notes := []string{fmt.Sprintf("a kubelet calls a static pod %s-NODE; containers keep running", pod.Name)}
	var emptyDirs []string
	for i := range pod.Spec.Volumes {
		if pod.Spec.Volumes[i].EmptyDir != nil {
			emptyDirs = append(emptyDirs, pod.Spec.Volumes[i].Name)
		}
	}
	if len(emptyDirs) > 0 {
		notes = append(notes, fmt.Sprintf("emptyDir %s: a container that restarts finds its content only under kubelet --root-dir %s",
			strings.Join(emptyDirs, ", "), stateDir))
	}
	if cgroupRoot != "" {
		notes = append(notes, "the pod's cgroup is found only under kubelet --cgroup-root /"+strings.Trim(cgroupRoot, "/"))
	}
	return notes
}
