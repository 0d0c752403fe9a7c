package why

import (
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/agent/api"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/plan"
	"github.com/podctl/podctl/runtime/plan/diff"
)

// DifferenceKind is the kind of a difference between this node and the API server.
type DifferenceKind string

// The kinds of differences.
const (
	// OnlyHere is a pod that the API server does not have. OnlyThere is one that this node does not have.
	OnlyHere  DifferenceKind = "OnlyHere"
	OnlyThere DifferenceKind = "OnlyThere"
	// OtherVersion is a pod whose newest version was not applied yet.
	OtherVersion DifferenceKind = "OtherVersion"
	// StatusNotSent is a pod whose newest status the API server may not have. OtherStatus is one whose status differs
	// although nothing is pending.
	StatusNotSent DifferenceKind = "StatusNotSent"
	OtherStatus   DifferenceKind = "OtherStatus"
	// DeletionPending is a pod that ends.
	DeletionPending DifferenceKind = "DeletionPending"
)

// Difference is a difference between this node and the API server.
type Difference struct {
	// Pod is the pod on this node, or in the API server if this node does not have it.
	Pod model.PodRef `json:"pod"`
	// Mirror is the name of the mirror pod of a pod of another source; empty for other pods.
	Mirror  string         `json:"mirror,omitempty"`
	Kind    DifferenceKind `json:"kind"`
	Message string         `json:"message"`
	// Changes are the fields that differ, from the applied version to that of the API server.
	Changes []diff.Change `json:"changes,omitempty"`
}

// Local is a pod on this node.
type Local struct {
	// Desired is the applied version, and Status the status on this node; nil if it is unknown.
	Desired *podspec.Desired
	Status  *v1.Pod
	// Ends reports whether the pod is being deleted on this node.
	Ends bool
}

// comparer compares the pods of this node with those of the API server. load converts a pod of the API server.
type comparer struct {
	now    time.Time
	remote *api.ClusterPods
	load   func(*v1.Pod) (*podspec.Desired, error)
	found  []Difference
}

// Compare returns the differences between the pods of this node and those of the API server, by pod.
func Compare(
	now time.Time, locals []Local, remote *api.ClusterPods, load func(*v1.Pod) (*podspec.Desired, error),
) []Difference {
	c := &comparer{now: now, remote: remote, load: load, found: []Difference{}}
	seen := map[types.UID]bool{}
	for i := range locals {
		l := &locals[i]
		pod := c.of(l.Desired)
		if pod != nil {
			seen[pod.UID] = true
		}
		if l.Desired.FromCluster() {
			c.compare(l, pod)
		} else {
			c.compareMirror(l, pod)
		}
	}
	for i := range remote.Items {
		if pod := &remote.Items[i]; !seen[pod.UID] {
			c.onlyThere(pod)
		}
	}
	slices.SortStableFunc(c.found, func(a, b Difference) int { return a.Pod.Compare(b.Pod) })
	return c.found
}

// of returns the object of a pod in the API server: the pod itself, or its mirror pod; nil if there is none.
func (c *comparer) of(d *podspec.Desired) *v1.Pod {
	mirror := c.mirrorName(d.Pod)
	i := slices.IndexFunc(c.remote.Items, func(pod v1.Pod) bool {
		if d.FromCluster() {
			return pod.UID == d.Pod.UID
		}
		return podspec.IsMirror(&pod) && pod.Namespace == d.Pod.Namespace && pod.Name == mirror
	})
	if i < 0 {
		return nil
	}
	return &c.remote.Items[i]
}

func (c *comparer) mirrorName(pod *v1.Pod) string {
	return podspec.MirrorName(pod.Namespace, pod.Name, c.remote.Node).Name
}

func (c *comparer) add(l *Local, kind DifferenceKind, format string, args ...any) *Difference {
	d := Difference{Pod: model.RefOf(l.Desired.Pod), Kind: kind, Message: fmt.Sprintf(format, args...)}
	if !l.Desired.FromCluster() {
		d.Mirror = c.mirrorName(l.Desired.Pod)
	}
	c.found = append(c.found, d)
	return &c.found[len(c.found)-1]
}

// compare compares a pod of the API server with its object; pod is nil if there is none.
func (c *comparer) compare(l *Local, pod *v1.Pod) {
	switch {
	case pod == nil && l.Ends:
		c.add(l, DeletionPending, "the object is gone; the pod ends here")
		return
	case pod == nil:
		c.add(l, OnlyHere, "the API server has no pod with this uid%s", c.replacement(l.Desired.Pod))
		return
	case pod.DeletionTimestamp != nil:
		c.add(l, DeletionPending, "%s", c.deletionText(pod))
	case l.Ends:
		c.add(l, DeletionPending, "the pod ends here; the API server does not delete it")
	}
	c.compareVersion(l, pod)
	c.compareStatus(l, pod)
}

// replacement describes the pod that has the name of another one in the API server.
func (c *comparer) replacement(gone *v1.Pod) string {
	for i := range c.remote.Items {
		if pod := &c.remote.Items[i]; pod.Namespace == gone.Namespace && pod.Name == gone.Name {
			return ", but one with this name and the uid " + string(pod.UID)
		}
	}
	return ""
}

func (c *comparer) deletionText(pod *v1.Pod) string {
	text := "the API server deletes the pod" + graceLeft(pod, c.now)
	if model.IsOver(&pod.Status) && len(pod.Finalizers) > 0 {
		text += "; it waits for the finalizers " + strings.Join(pod.Finalizers, ", ")
	}
	return text
}

// compareVersion compares the applied version with that of the API server.
func (c *comparer) compareVersion(l *Local, pod *v1.Pod) {
	kept := *pod // A deletion is not an edit.
	kept.DeletionTimestamp, kept.DeletionGracePeriodSeconds = nil, nil
	newest, err := c.load(&kept)
	if err != nil {
		c.add(l, OtherVersion, "podctl cannot use the newest version: %v", err)
		return
	}
	newest.Objects = l.Desired.Objects // They are not part of the pod's object.
	changes := plan.Edited(l.Desired, newest)
	here, there := l.Desired.Pod.Generation, pod.Generation
	switch {
	case pod.DeletionTimestamp != nil && len(changes) == 0:
		// The deletion is a generation of its own.
	case here != there:
		text := fmt.Sprintf("generation %d here, %d in the API server", here, there)
		c.add(l, OtherVersion, "%s", text+changedText(changes)).Changes = changes
	case len(changes) > 0:
		c.add(l, OtherVersion, "generation %d%s", here, changedText(changes)).Changes = changes
	}
}

func changedText(changes []diff.Change) string {
	if len(changes) == 0 {
		return ""
	}
	return ": " + diff.Diff{Changes: changes}.Text()
}

// compareStatus compares the phases, the ready containers and the restarts.
func (c *comparer) compareStatus(l *Local, pod *v1.Pod) {
	differs := ""
	if l.Status != nil && l.Status.Status.Phase != v1.PodUnknown {
		here, there := summaryOf(&l.Status.Status), summaryOf(&pod.Status)
		if here != there {
			differs = fmt.Sprintf(": %s here, %s in the API server", here, there)
		}
	}
	switch {
	case slices.Contains(c.remote.Unsent, pod.UID):
		c.add(l, StatusNotSent, "the newest status was not sent yet%s", differs)
	case differs != "":
		c.add(l, OtherStatus, "the status differs%s", differs)
	}
}

// summaryOf returns the phase, the ready containers and the restarts of a pod.
func summaryOf(s *v1.PodStatus) string {
	ready, restarts := 0, int32(0)
	for i := range s.ContainerStatuses {
		if s.ContainerStatuses[i].Ready {
			ready++
		}
		restarts += s.ContainerStatuses[i].RestartCount
	}
	return fmt.Sprintf("%s, %d of %d ready, %d restarts", s.Phase, ready, len(s.ContainerStatuses), restarts)
}

// compareMirror compares a pod of another source with its mirror pod.
func (c *comparer) compareMirror(l *Local, mirror *v1.Pod) {
	switch {
	case mirror == nil && c.remote.NoMirrors:
		return
	case mirror == nil:
		c.add(l, OnlyHere, "the API server has no mirror pod for it")
		return
	}
	if slices.Contains(c.remote.OldMirrors, mirror.UID) {
		c.add(l, OtherVersion, "the mirror pod shows an earlier version")
	}
	c.compareStatus(l, mirror)
}

// onlyThere reports a pod that this node does not have. A pod that has ended is no difference, because it never runs
// again.
func (c *comparer) onlyThere(pod *v1.Pod) {
	d := Difference{Pod: model.RefOf(pod), Kind: OnlyThere, Message: "this node has no record of the pod"}
	switch {
	case podspec.IsMirror(pod):
		d.Mirror, d.Message = pod.Name, "a mirror pod without a pod on this node"
	case pod.DeletionTimestamp != nil:
		d.Kind, d.Message = DeletionPending, c.deletionText(pod)+"; this node has no record of the pod"
	case model.IsOver(&pod.Status):
		return
	}
	c.found = append(c.found, d)
}
