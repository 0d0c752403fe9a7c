package node

import (
	"context"
	"net/url"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/podspec/quote"
	"github.com/podctl/podctl/runtime/agent/api"
	"github.com/podctl/podctl/runtime/cluster/membership"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/sleep"
)

// Describe adds the cluster's part to the status of the agent.
func (n *node) Describe(s *api.Status) {
	health, sent := n.client.Health.State(), n.statuses.Summary()
	c := &api.Cluster{
		APIServer: api.Server{
			Address: addressOf(n.client.Config.Host), Responds: health.Responds, Since: health.Since,
			LastList: n.source.ListedAt(),
		},
		Node:     describeNode(n),
		Server:   n.ports.describe(&n.Server),
		Statuses: api.Requests{Pending: len(sent.Unsent), LastSent: sent.LastSent, Error: sent.Failure},
		Events:   api.Requests{Pending: n.events.Pending()},

		Certificates: n.certificates.describe(),
	}
	if health.Err != nil {
		c.APIServer.Error = health.Err.Error()
	}
	if err := n.guard.Other(); err != nil {
		c.APIServer.Refusal = err.Error()
	} else if failure := n.source.Failure(); health.Responds && failure != "" {
		c.APIServer.Refusal = "cannot read the pods of this node: " + failure
	}
	s.Cluster = c
	for i := range s.Pods {
		pod := n.source.Get(s.Pods[i].UID)
		addFinalizers(&s.Pods[i], pod)
		if pod != nil {
			s.Pods[i].Conditions = conditionsOf(pod)
		}
	}
}

// listPatience limits the request for the pods. If the API server is slower, Pods returns the watched copies.
const listPatience = 5 * time.Second

// Pods returns the pods of this node in the API server, or the watched copies and why there are no newer ones.
func (n *node) Pods(ctx context.Context) *api.ClusterPods {
	p := &api.ClusterPods{
		APIVersion: model.APIVersion, Kind: "ClusterPods",
		Node: n.NodeName, AsOf: n.member.Now(), Items: []v1.Pod{},
		Unsent: n.statuses.Summary().Unsent, NoMirrors: !n.MirrorPods,
	}
	list, err := n.list(ctx)
	if err != nil {
		p.Stale, p.AsOf, list = quote.OneLine(err.Error()), n.source.AsOf(), n.source.All()
	}
	for _, pod := range list {
		p.Items = append(p.Items, *pod)
	}
	p.OldMirrors = n.mirrors.outdated(ctx, list)
	return p
}

// list requests the pods of this node from the API server.
func (n *node) list(ctx context.Context) ([]*v1.Pod, error) {
	limited, cancel := context.WithTimeout(ctx, listPatience)
	defer cancel()
	if err := n.guard.Confirm(limited); err != nil {
		return nil, err
	}
	return n.source.List(limited)
}

// awaitLast limits how long a shutdown of the machine waits for the last statuses. The next agent sends what is left.
const awaitLast, awaitEvery = 2 * time.Second, 20 * time.Millisecond

// AwaitStatuses returns when the API server has the statuses of all pods, or after 2 s.
func (n *node) AwaitStatuses(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, awaitLast)
	defer cancel()
	for !n.statuses.Summary().Settled && sleep.For(ctx, awaitEvery) == nil {
		continue
	}
}

// describeNode describes the Node object.
func describeNode(n *node) api.ClusterNode {
	d := api.ClusterNode{Name: n.NodeName}
	if r, err := membership.ReadFor(n.member.Layout.Root, n.NodeName); err == nil && r != nil {
		d.UID = r.UID // Until the API server has answered, this is the last registration.
	}
	manager := n.manager.Load()
	if manager == nil {
		return d
	}
	sent := manager.Sent()
	d.LeaseRenewed, d.StatusSent = sent.Lease, sent.Status
	if now := manager.Get(); now != nil {
		d.UID, d.Unschedulable, d.Conditions = now.UID, now.Spec.Unschedulable, now.Status.Conditions
	}
	return d
}

// addFinalizers adds the finalizers of a pod that has ended: until they are removed, its object and its records stay.
// pod is the watched copy; nil if there is none.
func addFinalizers(p *api.Pod, pod *v1.Pod) {
	if pod == nil || pod.DeletionTimestamp == nil || len(pod.Finalizers) == 0 {
		return
	}
	if model.IsOver(&pod.Status) {
		p.Waiting = append(slices.Clone(p.Waiting), "finalizers in the API server: "+strings.Join(pod.Finalizers, ", "))
	}
}

// addressOf returns the address of an API server without credentials.
func addressOf(host string) string {
	if u, err := url.Parse(host); err == nil {
		return u.Redacted()
	}
	return ""
}

// conditionsOf returns the conditions of a pod in the API, also if there are none; nil for a pod that is not there.
func conditionsOf(pod *v1.Pod) []v1.PodCondition {
	if pod == nil {
		return nil
	}
	return append([]v1.PodCondition{}, pod.Status.Conditions...)
}
