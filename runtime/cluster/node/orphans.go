package node

import (
	"context"
	"errors"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/agent"
	"github.com/podctl/podctl/runtime/cluster/apierror"
	"github.com/podctl/podctl/runtime/gc"
	"github.com/podctl/podctl/runtime/sleep"
)

// orphansSoon is the time between two checks before all sources have been read, and orphansEvery afterwards (kubelet:
// ContainerGCPeriod). A pod that has ended under a kubelet becomes an orphan when its object is deleted.
const orphansSoon, orphansEvery = time.Second, time.Minute

// orphans ends the pods that a kubelet has left and that no source wants (kubelet: HandlePodCleanups).
type orphans struct {
	node    *node
	agent   orphanAgent
	garbage orphanStore
	// begun is the start of the agent.
	begun time.Time
	// object returns the Node; nil if it is unknown.
	object   func() *v1.Node
	failures apierror.Once
}

// orphanAgent is the agent that deletes orphans.
type orphanAgent interface {
	SourcesRead(ctx context.Context) (bool, error)
	Shown(ctx context.Context) ([]*podspec.Desired, error)
	ReadRecord(ctx context.Context, uid types.UID)
}

// orphanStore finds orphans, and records that their deletion has begun.
type orphanStore interface {
	Find(ctx context.Context) ([]gc.Orphan, error)
	Adopt(ctx context.Context, o gc.Orphan) error
}

func newOrphans(n *node, a *agent.Agent) *orphans {
	return &orphans{
		node: n, agent: a, garbage: gc.Orphans{Collector: n.member.Engine.Garbage}, begun: n.member.Now(),
		object: n.manager.newest,
	}
}

// run looks for orphans until the context ends.
func (o *orphans) run(ctx context.Context) {
	for pause := orphansSoon; sleep.For(ctx, pause) == nil; {
		if read, err := o.sourcesRead(ctx); err != nil || !read {
			continue
		}
		pause = orphansEvery
		o.failures.Warn(ctx, o.node.member.Log, "cannot end the pods that a kubelet has left", o.end(ctx))
	}
}

// sourcesRead reports whether all sources have been read completely.
func (o *orphans) sourcesRead(ctx context.Context) (bool, error) {
	if !o.node.source.Listed() || o.object() == nil {
		return false, nil
	}
	return o.agent.SourcesRead(ctx)
}

// end records that the deletion of all orphans has begun.
func (o *orphans) end(ctx context.Context) error {
	found, err := o.garbage.Find(ctx)
	errs := []error{err}
	if found, err = o.unwanted(ctx, found); len(found) == 0 {
		return errors.Join(append(errs, err)...)
	}
	wanted, err := o.listed(ctx)
	if err != nil {
		return errors.Join(append(errs, err)...)
	}
	for _, one := range found {
		if !wanted[one.Pod.UID] {
			errs = append(errs, o.adopt(ctx, one))
		}
	}
	return errors.Join(errs...)
}

// unwanted returns the orphans that no source wants, as far as the agent knows. A pod that is older than the Node may
// be one of another cluster, whose kubelet had this directory before. A pod that is younger than the agent is one of a
// kubelet that runs beside it.
func (o *orphans) unwanted(ctx context.Context, found []gc.Orphan) (unwanted []gc.Orphan, err error) {
	object := o.object()
	if len(found) == 0 || object == nil {
		return nil, nil
	}
	shown, err := o.agent.Shown(ctx)
	if err != nil {
		return nil, err
	}
	wanted := uidsOf(o.node.source.All())
	for _, d := range shown {
		wanted[d.Pod.UID] = true
	}
	for _, one := range found {
		if !wanted[one.Pod.UID] && one.Began.After(object.CreationTimestamp.Time) && one.Began.Before(o.begun) {
			unwanted = append(unwanted, one)
		}
	}
	return unwanted, nil
}

// adopt records that the deletion of an orphan has begun, unless it is needed again.
func (o *orphans) adopt(ctx context.Context, one gc.Orphan) error {
	err := o.garbage.Adopt(ctx, one)
	switch {
	case errors.Is(err, gc.ErrNeeded):
		return nil
	case err != nil:
		return fmt.Errorf("pod %s: %w", one.Pod, err)
	}
	o.node.member.Log.Info("deleting a pod that a kubelet has left and that the API server does not have",
		"pod", one.Pod.String(), "uid", string(one.Pod.UID))
	o.agent.ReadRecord(ctx, one.Pod.UID)
	return nil
}

// listed returns the pods of the API server, also those that have ended. The watched copies may be old, so the API
// server must list its pods again, and confirm before and after that this is the same cluster.
func (o *orphans) listed(ctx context.Context) (map[types.UID]bool, error) {
	if err := o.node.guard.Confirm(ctx); err != nil {
		return nil, err
	}
	listed, err := o.node.source.List(ctx)
	if err == nil {
		err = o.node.guard.Confirm(ctx)
	}
	return uidsOf(listed), err
}

func uidsOf(pods []*v1.Pod) map[types.UID]bool {
	uids := map[types.UID]bool{}
	for _, pod := range pods {
		uids[pod.UID] = true
	}
	return uids
}
