package control

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podctl/podctl/commands/flags"
	"github.com/podctl/podctl/commands/session"
	"github.com/podctl/podctl/commands/table"
	"github.com/podctl/podctl/commands/terminal"
	"github.com/podctl/podctl/commands/view"
	"github.com/podctl/podctl/runtime/agent/api"
	"github.com/podctl/podctl/runtime/state"
)

// Commands returns the commands below `podctl agent`.
func Commands(sess *session.Session) []*cobra.Command {
	return []*cobra.Command{newStatus(sess), newReload(sess), newJoin(sess)}
}

func newStatus(sess *session.Session) *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "status [flags]",
		Short: "Show the status of the agent, its sources, pods and workloads",
		Long: "Show the problems of the agent, its sources, and the pods and workloads that it keeps. " +
			"For each pod and\nworkload, show whether it is ready, its source, " +
			"what it waits for and until when, and why its last pass failed.\n" +
			"Pods and workloads with problems come first. " +
			"In a cluster, also show whether the API server responds, the Node\nwith its heartbeats, " +
			"pending requests and certificates." +
			flags.ExitCodes("0 success", "1 error, for example because no agent is running"),
		Example: "  podctl agent status\n  podctl agent status -o json | jq '.pods[] | select(.error)'",
		Args:    flags.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := sess.Agent().Status(cmd.Context())
			if err != nil {
				return err
			}
			if terminal.IsDocument(output) {
				return terminal.WriteDocument(sess.IO.Out, output, s)
			}
			return show(sess.IO, s, podStates(cmd.Context(), sess))
		},
	}
	cmd.Flags().VarP(flags.Output(&output, "json", "yaml"), "output", "o", "Output format: text, json or yaml")
	return cmd
}

func newReload(sess *session.Session) *cobra.Command {
	return &cobra.Command{
		Use:   "reload",
		Short: "Reload the configuration and sources of the agent",
		Long: "Reload the configuration of the agent, as the signal SIGHUP does. " +
			"If it has changed, the agent restarts; pods are not\naffected. " +
			"Otherwise, the agent reads every source again. " +
			"An invalid configuration has no effect. " +
			"The command waits up\nto three seconds for the sources, and then lists those that are still being read." +
			flags.ExitCodes(
				"0 success",
				"1 error, for example because no agent is running or the configuration is invalid",
			),
		Example: "  podctl agent reload",
		Args:    flags.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			done, err := sess.Agent().Reload(cmd.Context())
			if err != nil {
				return err
			}
			for _, name := range done.Reading {
				sess.IO.Note("The source %s is still being read; podctl agent status shows the result.", name)
			}
			return nil
		},
	}
}

// podStates returns the pods of the agent by UID. It returns nil if the agent cannot list them.
func podStates(ctx context.Context, sess *session.Session) map[types.UID]*v1.Pod {
	list, err := sess.Agent().Pods(ctx)
	if err != nil {
		sess.IO.Note("note: cannot get the status of pods: %v", err)
		return nil
	}
	pods := map[types.UID]*v1.Pod{}
	for i := range list.Items {
		pods[list.Items[i].UID] = &list.Items[i]
	}
	return pods
}

// show prints a status as text. Problems come first, also within the tables.
func show(io *terminal.IO, s *api.Status, states map[types.UID]*v1.Pod) error {
	problems := problemsOf(s)
	if s.Cluster != nil {
		problems = append(clusterProblems(s.Cluster, io.Now()), problems...)
	}
	for _, text := range problems {
		io.Print("problem: %s", text)
	}
	ready := "ready"
	if !s.Ready {
		ready = "not ready"
	}
	io.Print("agent is running: %s, pid %d, since %s, %s",
		ready, s.PID, s.StartedAt.Local().Format(time.DateTime), runtimeText(&s.Runtime))
	if s.Cluster != nil {
		showCluster(io, s.Cluster)
	}
	for _, one := range s.Sources {
		io.Print("source %s: %s", one.Name, sourceText(&one))
		for _, p := range one.Takeovers {
			io.Print("  %s: %s", p.File, p.Text)
		}
	}
	return errors.Join(showPods(io, s, states), showWorkloads(io, s.Workloads), showDevices(io, s))
}

// showPods prints the table of pods. In a cluster it has their uids, because they identify pods there.
func showPods(io *terminal.IO, s *api.Status, states map[types.UID]*v1.Pod) error {
	if len(s.Pods) == 0 {
		io.Note("No pods.")
		return nil
	}
	slices.SortStableFunc(s.Pods, func(a, b api.Pod) int { return cmp.Compare(podRank(&a), podRank(&b)) })
	rows := make([][]string, 0, len(s.Pods))
	for i := range s.Pods {
		p := &s.Pods[i]
		ready, status := "-", "-"
		if pod := states[p.UID]; pod != nil {
			ready, status = view.ReadyText(pod), view.StatusText(pod)
		}
		rows = append(rows, []string{
			p.Namespace, p.Name, ready, status, cmp.Or(p.File, "-"), doing(p), next(p, io.Now()), waiting(p),
		})
		if s.Cluster != nil {
			rows[i] = slices.Insert(rows[i], 2, string(p.UID))
		}
	}
	header := []string{"NAMESPACE", "NAME", "READY", "STATUS", "FILE", "DOING", "NEXT", "WAITS FOR"}
	if s.Cluster != nil {
		header = slices.Insert(header, 2, "UID")
	}
	return table.Write(io.Out, header, rows)
}

// podRank returns the position of a pod in the table: pods with problems, waiting pods, then all others.
func podRank(p *api.Pod) int {
	switch {
	case podProblem(p) != "":
		return 0
	case len(p.Waiting) > 0:
		return 1
	}
	return 2
}

// podProblem describes the problem of a pod. It is empty if there is none.
func podProblem(p *api.Pod) string {
	switch {
	case p.Error != "":
		return "last pass failed: " + p.Error
	case p.Rejection != nil:
		return "not admitted: " + p.Rejection.Message
	case p.Eviction != nil:
		return "evicted: " + p.Eviction.Message
	}
	return ""
}

// problemsOf describes the problems of the runtime, the node, the sources, the pods and the workloads, one line each.
func problemsOf(s *api.Status) []string {
	var texts []string
	add := func(format string, args ...any) {
		texts = append(texts, oneLine([]string{fmt.Sprintf(format, args...)}))
	}
	if !s.Runtime.Answers && s.Runtime.Error != "" {
		add("%s", runtimeText(&s.Runtime))
	}
	if len(s.Pressure) > 0 {
		add("the node has %s: pods may be evicted, and new ones rejected", strings.Join(s.Pressure, ", "))
	}
	for _, source := range s.Sources {
		for _, p := range source.Problems {
			add("%s: %s", p.File, p.Text)
		}
	}
	for _, p := range s.Problems {
		add("%s: %s", p.File, p.Text)
	}
	for i := range s.Pods {
		if text := podProblem(&s.Pods[i]); text != "" {
			add("pod %s: %s", s.Pods[i].PodRef, text)
		}
	}
	for i := range s.Workloads {
		if w := &s.Workloads[i]; w.Error != "" {
			add("%s: %s", state.ObjectKey{Namespace: w.Namespace, Kind: w.Kind, Name: w.Name}, w.Error)
		}
	}
	return texts
}

// showWorkloads prints the workloads below the pods.
func showWorkloads(io *terminal.IO, workloads []api.Workload) error {
	if len(workloads) == 0 {
		return nil
	}
	rank := func(w *api.Workload) int {
		if w.Error != "" {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(workloads, func(a, b api.Workload) int { return cmp.Compare(rank(&a), rank(&b)) })
	rows := make([][]string, 0, len(workloads))
	for i := range workloads {
		w := &workloads[i]
		from := w.File
		if w.Source == "" {
			from = "-"
		}
		texts := w.Waiting
		if w.Error != "" {
			texts = append([]string{w.Error}, texts...)
		}
		name := state.ObjectKey{Kind: w.Kind}.Word() + "/" + w.Name
		rows = append(rows, []string{w.Namespace, name, from, strconv.Itoa(w.Pods), cmp.Or(oneLine(texts), "-")})
	}
	io.Print("")
	return table.Write(io.Out, []string{"NAMESPACE", "WORKLOAD", "FILE", "PODS", "WAITS FOR"}, rows)
}

func oneLine(texts []string) string {
	return strings.Join(strings.Fields(strings.Join(texts, "; ")), " ")
}

func runtimeText(r *api.Runtime) string {
	if r.Answers {
		return r.Endpoint + " answers"
	}
	return fmt.Sprintf("%s does not answer: %s", r.Endpoint, cmp.Or(r.Error, "not checked yet"))
}

func sourceText(s *api.Source) string {
	if !s.Complete {
		return "not read yet"
	}
	parts := []string{view.Count(s.Pods, "pod")}
	for _, more := range []struct {
		n    int
		what string
	}{{s.Workloads, "workload"}, {s.Objects, "stored object"}} {
		if more.n > 0 {
			parts = append(parts, view.Count(more.n, more.what))
		}
	}
	return strings.Join(parts, ", ")
}

// doing describes the current action of the agent on a pod.
func doing(p *api.Pod) string {
	switch {
	case p.CurrentPass == "terminate":
		return "deleting"
	case p.CurrentPass == "stop":
		return "stopping"
	case p.CurrentPass == "evict":
		return "evicting"
	case p.CurrentPass != "":
		return "pass"
	case p.Deleting:
		return "to be deleted"
	}
	return "-"
}

// next returns the time until the next scheduled pass of a pod.
func next(p *api.Pod, now time.Time) string {
	if p.NextPass.IsZero() {
		return "-"
	}
	return max(p.NextPass.Sub(now), 0).Round(time.Second).String()
}

// waiting describes what a pod waits for, and why its last pass failed.
func waiting(p *api.Pod) string {
	texts := p.Waiting
	if p.BlockedBy != "" {
		texts = append(texts, "the end of the pod with uid "+p.BlockedBy)
	}
	if p.Error != "" {
		texts = append([]string{p.Error}, texts...)
	}
	return cmp.Or(oneLine(texts), "-")
}
