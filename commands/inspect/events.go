package inspect

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/podctl/podctl/commands/completion"
	"github.com/podctl/podctl/commands/exit"
	"github.com/podctl/podctl/commands/flags"
	"github.com/podctl/podctl/commands/selection"
	"github.com/podctl/podctl/commands/session"
	"github.com/podctl/podctl/commands/table"
	"github.com/podctl/podctl/commands/terminal"
	"github.com/podctl/podctl/commands/view"
	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/controller"
	"github.com/podctl/podctl/runtime/events"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/objects"
	"github.com/podctl/podctl/runtime/state"
)

type eventsOptions struct {
	allNamespaces bool
	watch         bool
	warnings      bool
	output        string
}

// NewEvents returns the command `podctl events`.
func NewEvents(sess *session.Session) *cobra.Command {
	o := &eventsOptions{}
	cmd := &cobra.Command{
		Use:   "events [flags] [POD|KIND/NAME...]",
		Short: "Show events of pods and workloads",
		Long: "Show the actions of podctl on pods and the results of their probes, " +
			"in the form of a kubelet's events. " +
			"Repeated events\nare counted. " +
			"KIND/NAME or KIND NAME selects a workload and shows the events of its pods. " +
			"The events of a deleted pod\nare kept until `podctl prune`, or for a day with an agent." +
			flags.ExitCodes("0 success", "1 error", "130 interrupted"),
		Example: "  podctl events web\n" +
			"  podctl events deployment/web\n" +
			"  podctl events -A -w\n" +
			"  podctl events --warnings -o json",
		ValidArgsFunction: completion.Of(sess.Flags).Pods,
		RunE:              flags.Run(sess, o, runEvents),
	}
	f := cmd.Flags()
	f.BoolVarP(&o.allNamespaces, "all-namespaces", "A", false, "All namespaces")
	f.BoolVarP(&o.watch, "watch", "w", false, "Watch for new events")
	f.BoolVar(&o.warnings, "warnings", false, "Show only warnings")
	f.VarP(flags.Output(&o.output, "json", "yaml"), "output", "o", "Output format: text, json or yaml")
	return cmd
}

func runEvents(ctx context.Context, sess *session.Session, o *eventsOptions, args []string) error {
	l := &eventList{sess: sess, o: o, shown: map[string]time.Time{}}
	if err := l.parseTargets(args); err != nil {
		return err
	}
	entries, unreadable := l.find()
	if len(entries) == 0 && !o.watch && (unreadable != nil || !terminal.IsDocument(o.output)) {
		if unreadable == nil {
			sess.IO.Note("No events.")
		}
		return unreadable
	}
	l.unseen(entries)
	if err := l.show(entries, l.header()); err != nil || !o.watch {
		return exit.Join(ctx, err, unreadable)
	}
	for terminal.Sleep(ctx, terminal.WatchInterval) {
		entries, err := l.find()
		if err != nil {
			sess.IO.NoteOnce("note: %s", sess.ErrorText(err))
		}
		if entries = l.unseen(entries); len(entries) == 0 {
			continue
		}
		if err := l.show(entries, nil); err != nil {
			return err
		}
	}
	return session.WatchEnded(ctx)
}

// eventEntry is one event in `events -o json`.
type eventEntry struct {
	Pod model.PodRef `json:"pod"`
	state.PodEvent
}

// EventsDocument returns the document that `events -A -o json` prints. With an error it contains the events that could
// be read.
func EventsDocument(sess *session.Session) (any, error) {
	l := &eventList{sess: sess, o: &eventsOptions{allNamespaces: true}}
	entries, err := l.find()
	return view.List("PodEventList", entries), err
}

// eventList finds and prints the events of pods, once or repeatedly.
type eventList struct {
	sess *session.Session
	o    *eventsOptions
	// targets are the pods and workloads that the user named. If empty, all pods are meant.
	targets selection.Targets
	// applied and records are the stored pods and workloads. found has the arguments that selected a pod.
	applied []*podspec.Desired
	records []*controller.Record
	found   map[string]bool
	// shown maps an event to the time when it was last shown.
	shown map[string]time.Time
}

func (l *eventList) parseTargets(args []string) (err error) {
	l.targets, err = selection.ParseTargets(args, l.sess.Flags.Namespace)
	foreign := func(kind string) bool { return !podspec.KindNamed(kind).HasPods() }
	if err == nil && (len(l.targets.Objects) > 0 || slices.ContainsFunc(l.targets.Kinds, foreign)) {
		err = exit.Usagef("podctl records events of pods: name pods or workloads")
	}
	if err != nil {
		return err
	}
	return l.checkNames()
}

// checkNames refuses a name that several pods have now. Pods that are gone can have had the name too.
func (l *eventList) checkNames() error {
	if len(l.targets.Pods) == 0 {
		return nil
	}
	applied, err := selection.Applied(l.sess)
	if err != nil {
		return err
	}
	var errs []error
	for _, name := range l.targets.Pods {
		_, err := selection.Named(l.sess, applied, name)
		if several := (*state.AmbiguousError)(nil); errors.As(err, &several) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// find returns events, the oldest first. With an error it returns those that could be read.
func (l *eventList) find() ([]eventEntry, error) {
	all, unreadable := events.Events(l.sess.Flags.Layout())
	var err error
	if l.applied, err = selection.Applied(l.sess); err != nil {
		return nil, err
	}
	l.found = map[string]bool{}
	if l.records, err = l.sess.Workloads().List(func(state.ObjectKey) bool { return true }); err != nil {
		unreadable = errors.Join(unreadable, err)
	}
	var entries []eventEntry
	for i := range all {
		if !l.picks(&all[i]) {
			continue
		}
		for _, e := range all[i].Events {
			if !l.o.warnings || e.Type == state.Warning {
				entries = append(entries, eventEntry{all[i].Pod, e})
			}
		}
	}
	if err := l.missing(); err != nil && !l.o.watch {
		return nil, err
	}
	slices.SortStableFunc(entries, func(a, b eventEntry) int { return a.Last.Compare(b.Last) })
	return entries, unreadable
}

func (l *eventList) header() []string {
	header := []string{"LAST SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE"}
	if l.o.allNamespaces {
		header = append([]string{"NAMESPACE"}, header...)
	}
	return header
}

func (l *eventList) show(entries []eventEntry, header []string) error {
	if terminal.IsDocument(l.o.output) {
		return terminal.WriteDocument(l.sess.IO.Out, l.o.output, view.List("PodEventList", entries))
	}
	return table.Write(l.sess.IO.Out, header, l.rows(entries))
}

// unseen returns the events that occurred after they were last shown, and records them as shown.
func (l *eventList) unseen(entries []eventEntry) []eventEntry {
	return slices.DeleteFunc(slices.Clone(entries), func(e eventEntry) bool {
		key := fmt.Sprint(e.Pod.UID, e.Type, e.Reason, e.Container, e.Message)
		known := !e.Last.After(l.shown[key])
		l.shown[key] = e.Last
		return known
	})
}

func (l *eventList) rows(entries []eventEntry) [][]string {
	rows := make([][]string, 0, len(entries))
	for i := range entries {
		e := &entries[i]
		object := "pod/" + e.Pod.Name
		if e.Container != "" {
			object += " " + e.Container
		}
		row := []string{view.LastSeen(l.sess.IO.Now(), &e.PodEvent), string(e.Type), e.Reason, object, e.Message}
		if l.o.allNamespaces {
			row = append([]string{e.Pod.Namespace}, row...)
		}
		rows = append(rows, row)
	}
	return rows
}

// picks reports whether the events of a pod are shown.
func (l *eventList) picks(pod *events.PodEvents) bool {
	t := &l.targets
	here := l.o.allNamespaces || pod.Pod.Namespace == l.sess.Flags.Namespace
	if len(t.Pods)+len(t.Workloads)+len(t.Kinds) == 0 {
		return here
	}
	picked := here && slices.ContainsFunc(t.Kinds, func(kind string) bool { return l.isOfKind(kind, pod) })
	for _, name := range t.Pods {
		full := name
		if !strings.Contains(name, "/") {
			full = l.sess.Flags.Namespace + "/" + name
		}
		if full == pod.Pod.String() || state.MatchesUID(pod.Pod.UID, name) {
			l.found[name], picked = true, true
		}
	}
	for _, key := range t.Workloads {
		if l.isOf(key, pod) {
			l.found[key.String()], picked = true, true
		}
	}
	return picked
}

// isOfKind reports whether a kind selects a pod: the kind Pod, or the kind of the workload that created it.
func (l *eventList) isOfKind(kind string, pod *events.PodEvents) bool {
	return kind == podspec.KindPod || slices.ContainsFunc(l.records, func(r *controller.Record) bool {
		key := r.Key()
		return key.Kind == kind && l.isOf(key, pod)
	})
}

// isOf reports whether a workload created a pod, according to the pod's history or, without an owner there, to the
// applied pods.
func (l *eventList) isOf(key state.ObjectKey, pod *events.PodEvents) bool {
	for _, job := range controller.JobsOf(key, l.records) {
		if l.isOf(job.Key(), pod) {
			return true
		}
	}
	if pod.Owner != nil {
		return pod.Pod.Namespace == key.Namespace && pod.Owner.Kind == key.Kind && pod.Owner.Name == key.Name
	}
	return slices.ContainsFunc(l.applied, func(d *podspec.Desired) bool {
		return d.Pod.UID == pod.Pod.UID && controller.OwnsPod(key, d)
	})
}

// missing returns an error for each named pod and workload that does not exist and has no events.
func (l *eventList) missing() error {
	var errs []error
	for _, name := range l.targets.Pods {
		if _, err := selection.Named(l.sess, l.applied, name); err != nil && !l.found[name] {
			errs = append(errs, err)
		}
	}
	for _, key := range l.targets.Workloads {
		stored := slices.ContainsFunc(l.records, func(r *controller.Record) bool { return r.Key() == key })
		if !stored && !l.found[key.String()] {
			errs = append(errs, &objects.NotFoundError{Key: key})
		}
	}
	return errors.Join(errs...)
}
