package commands

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/podctl/podctl/runtime/events"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/state"
)

type eventsOptions struct {
	allNamespaces bool
	watch         bool
	warnings      bool
	output        string
	shown         map[string]time.Time
}

func newEvents(g *globals) *cobra.Command {
	o := &eventsOptions{shown: map[string]time.Time{}}
	cmd := &cobra.Command{
		Use:   "events [flags] [POD...]",
		Short: "Show what happened to pods",
		Long: "Show what podctl did to pods and what their probes said, in the words of a kubelet's events. What happened again is\n" +
			"counted. Events of a deleted pod are kept until `podctl prune`." + exitCodes("0 done", "1 error", "130 interrupted"),
		Example:           "  podctl events web\n  podctl events -A -w\n  podctl events --warnings -o json",
		ValidArgsFunction: g.completePods,
		RunE:              func(cmd *cobra.Command, args []string) error { return runEvents(cmd.Context(), g, o, args) },
	}
	f := cmd.Flags()
	f.BoolVarP(&o.allNamespaces, "all-namespaces", "A", false, "Pods of all namespaces")
	f.BoolVarP(&o.watch, "watch", "w", false, "Go on showing what happens")
	f.BoolVar(&o.warnings, "warnings", false, "Only warnings")
	f.VarP(outputFlag(&o.output, "json", "yaml"), "output", "o", "Output format: text, json or yaml")
	return cmd
}

func runEvents(ctx context.Context, g *globals, o *eventsOptions, args []string) error {
	entries, unread := g.events(o, args)
	if len(entries) == 0 && !o.watch && (unread != nil || !isDocument(o.output)) {
		if unread == nil {
			g.note("No events.")
		}
		return unread
	}
	if err := g.showEvents(o, entries); err != nil || !o.watch {
		return together(ctx, []error{err, unread})
	}
	for sleep(ctx, watchTick) {
		if err := g.showNewEvents(o, args); err != nil {
			return err
		}
	}
	return watchEnded(ctx)
}

// eventEntry is one event in `events -o json`.
type eventEntry struct {
	Pod model.PodRef `json:"pod"`
	state.PodEvent
}

// events lists the events that the arguments pick, the oldest first. With an error there
// are those that could be read.
func (g *globals) events(o *eventsOptions, names []string) ([]eventEntry, error) {
	all, unread := events.Events(g.layout())
	var entries []eventEntry
	found := map[string]bool{}
	for _, pod := range all {
		name, ok := g.picks(o, names, pod.Pod)
		if !ok {
			continue
		}
		found[name] = true
		for _, e := range pod.Events {
			if !o.warnings || e.Type == state.Warning {
				entries = append(entries, eventEntry{pod.Pod, e})
			}
		}
	}
	applied, err := g.applied(selection{})
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if _, err := g.namedPod(applied, name); err != nil && !found[name] && !o.watch {
			return nil, err
		}
	}
	slices.SortStableFunc(entries, func(a, b eventEntry) int { return a.Last.Compare(b.Last) })
	return entries, unread
}

// picks tells whether a pod is asked for, and by which name.
func (g *globals) picks(o *eventsOptions, names []string, ref model.PodRef) (string, bool) {
	if len(names) == 0 {
		return "", o.allNamespaces || ref.Namespace == g.namespace
	}
	for _, name := range names {
		full := name
		if !strings.Contains(name, "/") {
			full = g.namespace + "/" + name
		}
		if full == ref.String() || state.MatchesUID(ref.UID, name) {
			return name, true
		}
	}
	return "", false
}

func (g *globals) showEvents(o *eventsOptions, entries []eventEntry) error {
	g.rememberEvents(o, entries)
	if !isDocument(o.output) {
		header, rows := g.eventRows(o, entries)
		return table(g.env.Out, header, rows)
	}
	return writeDocument(g.env.Out, o.output, eventsDocument(entries))
}

func eventsDocument(entries []eventEntry) any {
	if entries == nil {
		entries = []eventEntry{}
	}
	return listDocument("PodEventList", entries)
}

func (g *globals) showNewEvents(o *eventsOptions, args []string) error {
	entries, err := g.events(o, args)
	if err != nil {
		g.noteOnce("note: %s", g.errorText(err))
	}
	entries = g.rememberEvents(o, entries)
	switch {
	case len(entries) == 0:
		return nil
	case isDocument(o.output):
		return g.showEvents(o, entries)
	}
	_, rows := g.eventRows(o, entries)
	return table(g.env.Out, nil, rows)
}

// rememberEvents returns what happened since it was shown last.
func (g *globals) rememberEvents(o *eventsOptions, entries []eventEntry) []eventEntry {
	return slices.DeleteFunc(slices.Clone(entries), func(e eventEntry) bool {
		key := fmt.Sprint(e.Pod.UID, e.Type, e.Reason, e.Container, e.Message)
		known := !e.Last.After(o.shown[key])
		o.shown[key] = e.Last
		return known
	})
}

func (g *globals) eventRows(o *eventsOptions, entries []eventEntry) ([]string, [][]string) {
	header := []string{"LAST SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE"}
	if o.allNamespaces {
		header = append([]string{"NAMESPACE"}, header...)
	}
	rows := make([][]string, 0, len(entries))
	for i := range entries {
		e := &entries[i]
		object := "pod/" + e.Pod.Name
		if e.Container != "" {
			object += " " + e.Container
		}
		row := []string{seenText(g.env.Now(), &e.PodEvent), string(e.Type), e.Reason, object, e.Message}
		if o.allNamespaces {
			row = append([]string{e.Pod.Namespace}, row...)
		}
		rows = append(rows, row)
	}
	return header, rows
}

// seenText is when an event happened, and how often (kubectl: printEvent).
func seenText(now time.Time, e *state.PodEvent) string {
	last := duration.HumanDuration(now.Sub(e.Last))
	if e.Count == 1 {
		return last
	}
	return fmt.Sprintf("%s (x%d over %s)", last, e.Count, duration.HumanDuration(now.Sub(e.First)))
}
