package commands

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/commands/completion"
	"github.com/podctl/podctl/commands/exit"
	"github.com/podctl/podctl/commands/flags"
	"github.com/podctl/podctl/commands/selection"
	"github.com/podctl/podctl/commands/session"
	"github.com/podctl/podctl/commands/terminal"
	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/mounts"
)

func newExport(sess *session.Session, agent *cobra.Command) *cobra.Command {
	var output string
	var node bool
	cmd := &cobra.Command{
		Use:   "export [flags] POD|--node",
		Short: "Print the manifest of an applied pod for a kubelet",
		Long: "Print the manifest of a pod that podctl applied, with its uid. " +
			"A kubelet on the same runtime that gets it as a static\npod takes over the running containers. " +
			"Fields that prevent this are listed on stderr. " +
			"A manifest that makes a kubelet\npanic (runtimeClassName) is not printed.\n" +
			"\n" +
			"--node prints the configuration of a kubelet that takes the place of the agent of this machine. " +
			"The command line of the\nkubelet, the files that stay and the differences are listed on stderr." +
			flags.ExitCodes(
				"0 success",
				"1 error",
				"3 printed, but a kubelet could not take over the pod without a restart",
				"5 manifest refused, or not printed",
				"130 interrupted",
			),
		Example: "  podctl export web > /etc/kubernetes/manifests/web.yaml\n" +
			"  podctl export --node > kubelet.yaml",
		Args: func(cmd *cobra.Command, args []string) error {
			if node {
				return flags.NoArguments(cmd, args)
			}
			return flags.NeedsUpTo(1, "one pod or its manifest")(cmd, args)
		},
		ValidArgsFunction: completion.Of(sess.Flags).Pod,
		RunE: func(cmd *cobra.Command, args []string) error {
			if node {
				return exportNode(cmd.Context(), sess, agent, output)
			}
			d, err := selection.One(cmd.Context(), sess, selection.Work, args[0])
			if err != nil {
				return err
			}
			return export(sess, d.Pod, output)
		},
	}
	cmd.Flags().VarP(flags.Format(&output), "output", "o", "Output format: yaml or json")
	cmd.Flags().BoolVar(&node, "node", false, "Print the configuration of a kubelet for the node of this machine")
	return cmd
}

func export(sess *session.Session, pod *v1.Pod, output string) error {
	problems := podspec.TakeoverProblems(pod)
	for _, p := range problems {
		if p.Panics {
			err := fmt.Errorf("pod %s is not exported: %s", model.RefOf(pod), p)
			return &exit.CodeError{Code: exit.Refused, Err: err}
		}
	}
	if err := terminal.WriteDocument(sess.IO.Out, cmp.Or(output, "yaml"), pod); err != nil {
		return err
	}
	for _, o := range problems {
		sess.IO.Note("note: %s", o)
	}
	for _, text := range takeoverNotes(pod, sess.Flags.StateDir, sess.Flags.CgroupRoot) {
		sess.IO.Note("note: %s", text)
	}
	if len(problems) > 0 {
		sess.IO.Note("pod %s cannot be taken over unchanged (see docs/kubernetes.md)", model.RefOf(pod))
		return exit.With(exit.NotYet)
	}
	return nil
}

// takeoverNotes returns the flags and precautions that the kubelet needs.
func takeoverNotes(pod *v1.Pod, stateDir, cgroupRoot string) []string {
	notes := []string{fmt.Sprintf("a kubelet names a static pod %s-NODE; its containers keep running", pod.Name)}
	// The kubelet reads the resources of the removed container (kubelet: recordContainerResizeOperations).
	notes = append(notes, "kubelet 1.36 panics when a container or sidecar of a static pod is removed or renamed "+
		"and the pod keeps its uid: "+
		"change metadata.uid in the same edit, or remove the file first and wait until the pod has ended")
	var emptyDirs []string
	for _, vol := range pod.Spec.Volumes {
		if vol.EmptyDir != nil {
			emptyDirs = append(emptyDirs, vol.Name)
		}
	}
	if len(emptyDirs) > 0 {
		notes = append(notes, fmt.Sprintf(
			"emptyDir %s: a restarted container sees its content only if the kubelet runs with --root-dir %s",
			strings.Join(emptyDirs, ", "), stateDir))
	}
	if needsMounts(pod) {
		notes = append(notes, mountNotes(stateDir)...)
	}
	if cgroupRoot != "" {
		root := "/" + strings.Trim(cgroupRoot, "/")
		notes = append(notes, "the kubelet finds the pod's cgroup only with --cgroup-root "+root)
	}
	return notes
}

// needsMounts reports whether a pod has mounts below the state directory: volumes in memory, or subPaths of volumes.
func needsMounts(pod *v1.Pod) bool {
	for i := range pod.Spec.Volumes {
		vol := &pod.Spec.Volumes[i]
		inMemory := vol.EmptyDir != nil && vol.EmptyDir.Medium != v1.StorageMediumDefault
		if inMemory || vol.Secret != nil || vol.Projected != nil || vol.DownwardAPI != nil {
			return true
		}
	}
	for _, ref := range podspec.Containers(pod) {
		hasSubPath := func(m v1.VolumeMount) bool { return m.SubPath != "" || m.SubPathExpr != "" }
		if slices.ContainsFunc(ref.VolumeMounts, hasSubPath) {
			return true
		}
	}
	return false
}

// mountNotes returns a warning if a kubelet would bind its root directory on itself (kubelet: Mounter.MakeRShared).
func mountNotes(stateDir string) []string {
	at, private, err := mounts.Private(stateDir)
	if err != nil || !private {
		return nil
	}
	note := fmt.Sprintf("%s is in the private mount %s: "+
		"a kubelet with that root directory bind-mounts it onto itself, which hides volumes in memory "+
		"and subPaths below it from restarted containers; "+
		"run mount --make-shared %s before the kubelet starts", stateDir, at, at)
	return []string{note}
}
