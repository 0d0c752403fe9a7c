package view

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/commands/terminal"
	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/podspec/document"
	"github.com/podctl/podctl/runtime/controller"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/objects"
	"github.com/podctl/podctl/runtime/plan"
	"github.com/podctl/podctl/runtime/plan/diff"
	"github.com/podctl/podctl/runtime/state"
	"github.com/podctl/podctl/runtime/workload"
)

// ObjectName identifies an object in documents.
type ObjectName struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

func nameOf(key state.ObjectKey) ObjectName { return ObjectName{key.Kind, key.Namespace, key.Name} }

// Key converts the name to the key of podctl's storage.
func (n ObjectName) Key() state.ObjectKey {
	return state.ObjectKey{Namespace: n.Namespace, Kind: n.Kind, Name: n.Name}
}

// ObjectChange is the document of a change to a stored ConfigMap, Secret, claim or Service.
type ObjectChange struct {
	APIVersion string          `json:"apiVersion"`
	Kind       string          `json:"kind"`
	Object     ObjectName      `json:"object"`
	Outcome    objects.Outcome `json:"outcome"`
	Fields     []string        `json:"fields,omitempty"`
	// Changes are the differing values of a ConfigMap.
	Changes []diff.Change  `json:"changes,omitempty"`
	Pods    []model.PodRef `json:"pods"`
}

// ObjectChangeOf returns the document of a change. users are the applied pods that use the object.
func ObjectChangeOf(c *objects.Change, users []*podspec.Desired) ObjectChange {
	doc := ObjectChange{
		APIVersion: model.APIVersion,
		Kind:       "ObjectChange",
		Object:     nameOf(c.Key),
		Outcome:    c.Outcome,
		Fields:     c.Fields,
		Pods:       []model.PodRef{},
	}
	for _, t := range c.Texts {
		doc.Changes = append(doc.Changes, diff.Change{Path: t.Path, Before: t.Before, After: t.After})
	}
	for _, d := range users {
		doc.Pods = append(doc.Pods, model.RefOf(d.Pod))
	}
	return doc
}

// FutureOutcome describes the future outcome for an object, and the fields that differ.
func FutureOutcome(c *objects.Change) string {
	text := fmt.Sprintf("%s would be %s", c.Key, c.Outcome)
	if c.Outcome == objects.Unchanged {
		text = fmt.Sprintf("%s is %s", c.Key, c.Outcome)
	}
	if len(c.Fields) > 0 {
		text += ": " + strings.Join(c.Fields, ", ")
	}
	return text
}

// FutureTexts lists the values of a ConfigMap that would change, in the format of a pod's plan. It follows the line of
// FutureOutcome.
func FutureTexts(c *ObjectChange, colors terminal.Colors) string {
	var b strings.Builder
	v := Plan{Colors: colors}
	for i, one := range changesOf(c.Changes) {
		if i == maxFields {
			v.writeDetail(&b, planDetail{text: fmt.Sprintf("… and %d more (-o json has all)", len(c.Changes)-i)})
			break
		}
		row := planRow{details: []planDetail{one.detail()}}.clean()
		v.writeDetail(&b, row.details[0])
	}
	return b.String()
}

// WorkloadChange is the document of a change to a workload.
type WorkloadChange struct {
	APIVersion string          `json:"apiVersion"`
	Kind       string          `json:"kind"`
	Workload   ObjectName      `json:"workload"`
	Outcome    objects.Outcome `json:"outcome"`
	Revision   int64           `json:"revision"`
	// Pods are the pods that the workload must have now. Deletes are the pods to delete.
	Pods    []model.PodRef  `json:"pods"`
	Deletes []model.PodRef  `json:"deletes,omitempty"`
	Waits   []workload.Wait `json:"waiting,omitempty"`
	// Unfit is the reason why this machine has no pod of a DaemonSet.
	Unfit  string             `json:"unfit,omitempty"`
	Status *workload.Status   `json:"status,omitempty"`
	Job    *batchv1.JobStatus `json:"jobStatus,omitempty"`
}

// WorkloadChangeOf returns the document of a change to a workload with its expansion.
func WorkloadChangeOf(c *controller.Change, x *workload.Expansion) WorkloadChange {
	doc := WorkloadChange{
		APIVersion: model.APIVersion,
		Kind:       "WorkloadChange",
		Workload:   nameOf(c.Record.Key()),
		Outcome:    c.Outcome,
		Revision:   c.Record.Revision(),
		Pods:       []model.PodRef{},
		Deletes:    x.Gone,
		Waits:      x.Waits,
		Unfit:      x.Unfit,
	}
	for _, d := range x.Pods {
		doc.Pods = append(doc.Pods, model.RefOf(d.Pod))
	}
	if doc.Job = x.Job; x.Job == nil {
		doc.Status = &x.Status
	}
	return doc
}

// Key returns the key of the workload.
func (c *WorkloadChange) Key() state.ObjectKey { return c.Workload.Key() }

// WorkloadHeading returns the heading above the plans of a workload's pods.
func WorkloadHeading(c *WorkloadChange) string {
	text := fmt.Sprintf("%s %s/%s · is %s", c.Workload.Kind, c.Workload.Namespace, c.Workload.Name, c.Outcome)
	if c.Outcome != objects.Unchanged {
		text = fmt.Sprintf("%s %s/%s · would be %s", c.Workload.Kind, c.Workload.Namespace, c.Workload.Name, c.Outcome)
	}
	return text
}

// WorkloadWaits describes why pods of a workload are not yet created, updated or deleted, one line each.
func WorkloadWaits(c *WorkloadChange) []string {
	lines := make([]string, 0, len(c.Waits))
	for _, w := range c.Waits {
		line := fmt.Sprintf("pod %s/%s waits: %s", c.Workload.Namespace, w.Pod, w.Reason)
		lines = append(lines, terminal.PrintableLine(line))
	}
	return lines
}

// WorkloadMissing describes why a workload was incomplete when it was last observed: its waits, and the state of each
// pod that is not settled.
func WorkloadMissing(c *WorkloadChange, x *workload.Expansion) []string {
	lines := WorkloadWaits(c)
	there := map[model.PodRef]bool{}
	for _, pod := range x.Seen {
		ref := model.RefOf(pod)
		there[ref] = true
		if slices.Contains(x.Settled, ref) || pod.Status.Phase == v1.PodSucceeded {
			continue
		}
		text := fmt.Sprintf("pod %s is %s, %s containers ready", ref, StatusText(pod), ReadyText(pod))
		if pod.Status.Message != "" {
			text += ": " + pod.Status.Message
		}
		lines = append(lines, terminal.PrintableLine(text))
	}
	for _, ref := range c.Pods {
		if !there[ref] {
			lines = append(lines, fmt.Sprintf("pod %s is not created yet", ref))
		}
	}
	return lines
}

// planCounts counts plans of pods by their effect on the pod.
type planCounts struct{ made, changed, gone, waiting, unchanged int }

func (n *planCounts) add(p *plan.Plan, gone bool) {
	switch {
	case gone:
		n.gone++
	case p.CreateSandbox && len(p.Keeps)+p.Summary.Replace == 0:
		n.made++
	case len(p.Steps)+len(p.Record) > 0:
		n.changed++
	default:
		n.unchanged++
	}
}

func (n *planCounts) addOutcome(outcome objects.Outcome) {
	switch outcome {
	case objects.Created:
		n.made++
	case objects.Configured:
		n.changed++
	case objects.Unchanged:
		n.unchanged++
	}
}

// text lists the counts that are not zero.
func (n *planCounts) text() string {
	var parts []string
	for _, part := range []struct {
		count int
		text  string
	}{
		{n.made, "to create"},
		{n.changed, "to change"},
		{n.gone, "to delete"},
		{n.waiting, "waiting"},
		{n.unchanged, "unchanged"},
	} {
		if part.count > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", part.count, part.text))
		}
	}
	return cmp.Or(strings.Join(parts, ", "), "none")
}

// WorkloadSummary counts the plans of a workload's pods by their effect.
func WorkloadSummary(c *WorkloadChange, plans []*plan.Plan) string {
	n := planCounts{waiting: len(c.Waits)}
	for _, p := range plans {
		n.add(p, slices.Contains(c.Deletes, p.Pod))
	}
	text := "Pods: " + n.text() + "."
	if c.Unfit != "" {
		text = fmt.Sprintf("No pod here: %s. %s", UnfitText(c.Unfit), text)
	}
	return text
}

// GrandTotal counts the changes to all pods, workloads and objects of a plan. deleted reports whether a plan deletes
// its pod.
func GrandTotal(
	plans []*plan.Plan, workloads []WorkloadChange, changes []ObjectChange, deleted func(*plan.Plan) bool,
) string {
	var pods planCounts
	for _, p := range plans {
		pods.add(p, deleted(p))
	}
	var ofWorkloads, ofObjects planCounts
	for i := range workloads {
		pods.waiting += len(workloads[i].Waits)
		ofWorkloads.addOutcome(workloads[i].Outcome)
	}
	for i := range changes {
		ofObjects.addOutcome(changes[i].Outcome)
	}
	var parts []string
	for _, more := range []struct {
		what   string
		counts planCounts
	}{{"pods", pods}, {"workloads", ofWorkloads}, {"objects", ofObjects}} {
		if more.counts != (planCounts{}) {
			parts = append(parts, more.what+": "+more.counts.text())
		}
	}
	return "Total: " + strings.Join(parts, "; ") + "."
}

// UnfitText describes why this machine has no pod of a DaemonSet, and how to change that.
func UnfitText(why string) string {
	return terminal.PrintableLine(why) + " (node-labels in the configuration sets its labels)"
}

// WorkloadOutcome describes the result of a pass over a workload's pods.
func WorkloadOutcome(c *WorkloadChange) string {
	text := fmt.Sprintf("%s: ", c.Key())
	switch {
	case c.Workload.Kind == podspec.KindCronJob:
		return text + fmt.Sprintf("podctl agent starts its Jobs; `podctl run --from cronjob/%s` runs one now",
			c.Workload.Name)
	case c.Status == nil:
		return text + WorkloadCounts(c)
	case c.Unfit != "" && c.Status.Complete():
		return text + "no pod here: " + UnfitText(c.Unfit)
	case c.Status.Complete():
		text += fmt.Sprintf("%d of %d pods available", c.Status.Available, c.Status.Desired)
		if c.Status.Old > 0 {
			text += fmt.Sprintf(", %d of an older version until they are deleted", c.Status.Old)
		}
		return text
	}
	text += WorkloadCounts(c)
	if c.Status.Unknown > 0 {
		return text
	}
	return text + "; apply again to continue, or use --wait"
}

// WorkloadCounts counts the pods of a workload in the last observation.
func WorkloadCounts(c *WorkloadChange) string {
	if c.Status == nil {
		return fmt.Sprintf("%d active, %d succeeded, %d failed", c.Job.Active, c.Job.Succeeded, c.Job.Failed)
	}
	text := fmt.Sprintf("%d of %d pods updated, %d available", c.Status.Updated, c.Status.Desired, c.Status.Available)
	if c.Status.Unknown > 0 {
		text += fmt.Sprintf(", %d unknown", c.Status.Unknown)
	}
	return text
}

// Outcomes for objects that are no longer in the manifests of their set.
const (
	IsPruned      = "pruned"
	WouldBePruned = "would be pruned"
)

// Prune is the document of an object that is no longer in the manifests of its set.
type Prune struct {
	APIVersion string     `json:"apiVersion"`
	Kind       string     `json:"kind"`
	Object     ObjectName `json:"object"`
	Outcome    string     `json:"outcome"`
}

// PruneOf returns the document of one pod, workload or object.
func PruneOf(key state.ObjectKey, outcome string) Prune {
	return Prune{APIVersion: model.APIVersion, Kind: "Prune", Object: nameOf(key), Outcome: outcome}
}

// PruneLine describes a Prune in one line.
func PruneLine(p *Prune) string { return fmt.Sprintf("%s %s", p.Object.Key(), p.Outcome) }

// PruneSummary counts the objects that would be pruned.
func PruneSummary(docs []Prune) string {
	if len(docs) == 0 {
		return "Prune: nothing."
	}
	return fmt.Sprintf("Prune: %s not in the manifests.", document.Counted(len(docs), "object"))
}
