package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/podctl/podctl/runtime/admission"
	"github.com/podctl/podctl/runtime/cgroup"
	"github.com/podctl/podctl/runtime/criconfig"
	"github.com/podctl/podctl/runtime/machine"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/observe"
	"github.com/podctl/podctl/runtime/sleep"
)

// limitPeriod is how often the limits of all pods together are compared with the resources of the machine. After a
// failure, they are set again after limitRetry.
const limitPeriod, limitRetry = time.Minute, 10 * time.Second

// podLimiter sets the limits of all pods together when the agent starts, and if their cgroup is missing or the facts of
// the machine have changed (kubelet: enforceNodeAllocatableCgroups).
type podLimiter struct {
	// facts returns the facts of the machine with the cgroup driver of the runtime. kubelet returns a kubelet that has
	// the same cgroups.
	facts   func(context.Context) (criconfig.Node, error)
	kubelet func() (machine.Kubelet, bool)
	limits  func(criconfig.Node) (v1.ResourceList, error)
	exists  func(name string) bool
	set     func(name string, tiers []string, r cgroup.Resources) error
	record  func(kind, reason, message string)
	log     *slog.Logger

	// done are the limits that were set last, and failure identifies the last error.
	done    limitsOf
	failure string
}

// limitsOf are the limits of a cgroup.
type limitsOf struct {
	name string
	criconfig.PodResources
}

// limitsPods reports whether the cgroup of all pods gets limits. A node also sets them if they are not enforced: they
// are then the capacity of the machine. Otherwise, the cgroup stays as it is.
func (s *Settings) limitsPods() bool { return s.Cluster != nil || s.Resources.Enforce }

func newPodLimiter(d *daemon) *podLimiter {
	host := d.engine.Host
	l := &podLimiter{
		facts: func(ctx context.Context) (criconfig.Node, error) {
			_, err := host.RuntimeFacts(ctx)
			return host.Node(), err
		},
		kubelet: func() (machine.Kubelet, bool) { return machine.KubeletOfCgroups("/proc") },
		limits:  func(node criconfig.Node) (v1.ResourceList, error) { return limitsOfPods(&d.Resources, node) },
		exists:  cgroup.Machine{}.Exists, set: cgroup.Machine{}.Limit,
		record: func(string, string, string) {}, log: d.Log,
	}
	if d.joined != nil {
		l.record = d.joined.RecordEvent
	}
	return l
}

// limitsOfPods returns how much of the machine all pods together may use.
func limitsOfPods(settings *admission.Settings, node criconfig.Node) (v1.ResourceList, error) {
	capacity := v1.ResourceList{}
	for name, has := range node.Allocatable {
		if name != v1.ResourceMemory || !has.IsZero() { // Zero is unknown.
			capacity[name] = has
		}
	}
	if _, limit, err := machine.Tasks("/proc"); err == nil {
		capacity[model.ResourcePIDs] = *resource.NewQuantity(limit, resource.DecimalSI)
	}
	return settings.Limits(capacity)
}

// allPods returns a function that returns the cgroup of all pods and the limit of its memory, zero if it is unknown or
// pods of a kubelet use that cgroup too.
func allPods(settings *admission.Settings, host *observe.Host) func() (name string, memory int64) {
	return func() (name string, memory int64) {
		if _, found := machine.KubeletOfCgroups("/proc"); found {
			return "", 0
		}
		node := host.Node()
		limits, err := settings.Limits(v1.ResourceList{v1.ResourceMemory: *node.Allocatable.Memory()})
		if err != nil {
			return "", 0
		}
		return criconfig.CgroupOfPods(node), limits.Memory().Value()
	}
}

// run sets the limits until the context ends.
func (l *podLimiter) run(ctx context.Context) {
	for {
		pause := limitPeriod
		if err := l.update(ctx); err != nil {
			pause = limitRetry
			l.report(ctx, err)
		} else {
			l.failure = ""
		}
		if sleep.For(ctx, pause) != nil {
			return
		}
	}
}

// waitError is the reason why the limits are not set yet. It leads to no event.
type waitError struct{ error }

// update sets the limits, unless they are as they were set last.
func (l *podLimiter) update(ctx context.Context) error {
	node, err := l.facts(ctx)
	if err != nil {
		return waitError{err}
	}
	if k, found := l.kubelet(); found {
		l.done = limitsOf{} // The kubelet may change them.
		return waitError{fmt.Errorf("%s (process %d) has the same cgroups, and sets their limits", k.Process, k.PID)}
	}
	allowed, err := l.limits(node)
	if err != nil {
		return err
	}
	now := limitsOf{criconfig.CgroupOfPods(node), criconfig.AllPodsCgroup(allowed, node)}
	if reflect.DeepEqual(now, l.done) && l.exists(now.name) {
		return nil
	}
	if err = l.set(now.name, criconfig.CgroupTiers(node), cgroup.Resources(now.PodResources)); err != nil {
		return err
	}
	l.done = now
	l.log.Info("all pods together are limited", "cgroup", now.name,
		"memory", allowed.Memory().String(), "cpu", allowed.Cpu().String())
	l.record(v1.EventTypeNormal, "NodeAllocatableEnforced", "Updated Node Allocatable limit across pods")
	return nil
}

// report logs a failure once, and again after another one.
func (l *podLimiter) report(ctx context.Context, err error) {
	failure := err.Error()
	if errors.As(err, new(*cgroup.InUseError)) {
		failure = "in use" // The text has the usage, which changes.
	}
	if ctx.Err() != nil || failure == l.failure {
		return
	}
	l.failure = failure
	l.log.Warn("the limits of all pods together are not set", "error", err.Error())
	if !errors.As(err, new(waitError)) {
		l.record(v1.EventTypeWarning, "FailedNodeAllocatableEnforcement",
			fmt.Sprintf("Failed to update Node Allocatable Limits: %v", err))
	}
}
