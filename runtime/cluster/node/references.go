package node

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/admission"
	"github.com/podctl/podctl/runtime/agent"
	"github.com/podctl/podctl/runtime/agent/daemon"
	"github.com/podctl/podctl/runtime/cluster/bundles"
	"github.com/podctl/podctl/runtime/cluster/claims"
	"github.com/podctl/podctl/runtime/cluster/references"
	"github.com/podctl/podctl/runtime/cluster/tokens"
	"github.com/podctl/podctl/runtime/objects"
	"github.com/podctl/podctl/runtime/state"
)

// hideSecrets removes Secrets and tokens that are on disk although they must not be.
func hideSecrets(ctx context.Context, m *daemon.Member, copies objects.Copies) error {
	if !copies.MemorySecrets {
		return nil
	}
	locker := &state.Locker{Layout: m.Layout, Waiting: func(text string) { m.Log.Info(text) }}
	if err := errors.Join(copies.HideSecrets(), state.HideSecrets(ctx, locker)); err != nil {
		return fmt.Errorf("--offline-secrets=false: removing Secrets from the disk: %w", err)
	}
	return nil
}

// newReferences returns the ConfigMaps, Secrets, tokens, trust anchors and claims for pods of the API server.
func (n *node) newReferences(ctx context.Context, copies objects.Copies) *references.References {
	watcher := references.Watcher{Client: n.client.Core, Confirm: n.guard.Confirm}
	requester := tokens.Watcher{
		Client: n.client.Core, Pod: n.source.Get, Now: n.member.Now, Random: rand.Float64,
		Confirm: n.guard.Confirm,
	}
	reader := claims.Watcher{
		Client: n.client.Core, Pod: n.source.Get, Labels: n.manager.labels,
		Confirm: n.guard.Confirm, InUse: n.isClaimInUse, Turn: &sync.Mutex{},
	}
	anchors := &bundles.Watcher{
		Client: n.client.Bundles, Pod: n.source.Get, Confirm: n.guard.Confirm,
	}
	watch := func(ctx context.Context, key state.ObjectKey, sink *references.Sink) {
		switch {
		case podspec.IsToken(key.Kind, key.Name):
			requester.Watch(ctx, key, sink)
		case podspec.IsBundle(key.Kind, key.Name):
			anchors.Watch(ctx, key, sink)
		case key.Kind == podspec.KindClaim:
			reader.Watch(ctx, key, sink)
		default:
			watcher.Watch(ctx, key, sink)
		}
	}
	return references.New(references.Settings{
		Copies: copies, Watch: watch,
		Stored: n.records.pods, HasEnded: n.records.hasEnded, Now: n.member.Now, Log: n.member.Log,
		Wake: func(uid types.UID) {
			if a := n.agent.Load(); a != nil {
				a.WakePod(ctx, uid)
			}
		},
	})
}

// runCollections keeps the files of Services and RuntimeClasses up to date. A changed class wakes the pods that name
// one.
func (n *node) runCollections(ctx context.Context, a *agent.Agent) {
	layout, log := n.member.Layout, n.member.Log
	services := references.Collection{
		Client: n.client.Core, File: state.ClusterServices(layout), Confirm: n.guard.Confirm, Log: log,
	}
	classes := references.Collection{
		Client: n.client.Node, File: state.ClusterClasses(layout), Confirm: n.guard.Confirm, Log: log,
		Changed: func() { wakeClassUsers(ctx, a) },
	}
	var both sync.WaitGroup
	both.Go(func() { references.KeepServices(ctx, services) })
	both.Go(func() { references.KeepRuntimeClasses(ctx, classes) })
	both.Wait()
}

// wakeClassUsers requests a pass of each pod with a RuntimeClass: it may wait for it.
func wakeClassUsers(ctx context.Context, a *agent.Agent) {
	shown, err := a.ShownPods(ctx)
	if err != nil {
		return // The agent ends.
	}
	for _, p := range shown {
		if p.Desired.FromCluster() && p.Desired.Pod.Spec.RuntimeClassName != nil {
			a.WakePod(ctx, p.Desired.Pod.UID)
		}
	}
}

// Node returns the parts of the Node in the API for admission. It returns nil before its registration.
func (n *node) Node() *admission.Node {
	registered := n.manager.newest()
	if registered == nil {
		return nil
	}
	return &admission.Node{Labels: registered.Labels, Taints: registered.Spec.Taints}
}

// isClaimInUse reports whether another pod than that of a key may use the claim of the key on this machine.
func (n *node) isClaimInUse(key state.ObjectKey) bool {
	uid, claim := podspec.UnbindName(key.Name)
	return n.references.Any(func(other state.ObjectKey, o *podspec.Object) bool {
		user, its := podspec.UnbindName(other.Name)
		if other.Kind != key.Kind || other.Namespace != key.Namespace ||
			its != claim || user == uid || o.Volume == nil {
			return false
		}
		return n.records.mayUse(user)
	})
}
