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

// podLimiter sets the limits of all pods together when the agent starts, and when the resources of the machine have
// changed (kubelet: enforceNodeAllocatableCgroups).
type podLimiter struct {
	// facts returns the facts of the machine with the cgroup driver of the runtime. kubelet returns an error if a
	// kubelet uses the same runtime: the cgroups are then those of the kubelet.
	facts   func(context.Context) (criconfig.Node, error)
	kubelet func() error
	limits  func(criconfig.Node) (v1.ResourceList, error)
	exists  func(name string) bool
	set     func(name string, tiers []string, r cgroup.Resources) error
	record  func(kind, reason, message string)
	log     *slog.Logger

	// done are the limits that were set last, and failure is the text of the last error.
	done    limitsOf
	failure string
}

// limitsOf are the limits of a cgroup.
type limitsOf struct {
	name string
	criconfig.PodResources
}

func newPodLimiter(d *daemon) *podLimiter {
	host := d.engine.Host
	l := &podLimiter{
		facts: func(ctx context.Context) (criconfig.Node, error) {
			_, err := host.RuntimeFacts(ctx)
			return host.Node(), err
		},
		kubelet: host.CheckKubelet,
		limits:  func(node criconfig.Node) (v1.ResourceList, error) { return limitsOfPods(d.Resources, node) },
		exists:  cgroup.Machine{}.Exists, set: cgroup.Machine{}.Limit,
		record: func(string, string, string) {}, log: d.Log,
	}
	if d.cluster != nil {
		l.record = d.cluster.RecordEvent
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

// allPods returns a function that returns the cgroup of all pods and the limit of its memory, zero if unknown.
func allPods(settings *admission.Settings, host *observe.Host) func() (name string, memory int64) {
	return func() (name string, memory int64) {
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

// errKubeletLimits is the result while a kubelet uses the same runtime.
var errKubeletLimits = errors.New("a kubelet uses the same runtime, so it sets them")

// update sets the limits, unless they are as they were set last.
func (l *podLimiter) update(ctx context.Context) error {
	node, err := l.facts(ctx)
	if err != nil {
		return err
	}
	if l.kubelet() != nil {
		return errKubeletLimits
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

// report logs a failure once.
func (l *podLimiter) report(ctx context.Context, err error) {
	text := err.Error()
	if ctx.Err() != nil || text == l.failure {
		return
	}
	l.failure = text
	l.log.Warn("the limits of all pods together are not set", "error", text)
	if !errors.Is(err, errKubeletLimits) {
		l.record(v1.EventTypeWarning, "FailedNodeAllocatableEnforcement",
			fmt.Sprintf("Failed to update Node Allocatable Limits: %v", err))
	}
}
