package kubernetes

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
)

// watcher watches all pods of the API server and finds statuses that go backward.
type watcher struct {
	client *http.Client
	stop   context.CancelFunc
	ended  chan struct{}
	note   func(format string, args ...any)

	mu   sync.Mutex
	last map[string]*v1.Pod
	// unready holds the ids of the containers of pods that became unready.
	unready map[string]string
	// interrupted holds the containers that did not start, because the agent was killed during the start, by the uid of
	// the pod and the name of the container. As with a kubelet, the next start counts as a restart.
	interrupted map[string]map[string]bool
	problems    []string
}

func (w *week) startWatcher(t *testing.T) *watcher {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(w.path("admin.crt"), w.path("admin.key"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	a := &watcher{
		client: &http.Client{Transport: &http.Transport{
			TLSClientConfig: &tls.Config{RootCAs: w.roots(t), Certificates: []tls.Certificate{pair}},
		}},
		stop: stop, ended: make(chan struct{}), note: w.note, last: map[string]*v1.Pod{}, unready: map[string]string{},
		interrupted: map[string]map[string]bool{},
	}
	go func() {
		defer close(a.ended)
		for ctx.Err() == nil {
			_ = a.watch(ctx) // the API server goes
			time.Sleep(500 * time.Millisecond)
		}
	}()
	t.Cleanup(func() { stop(); <-a.ended })
	return a
}

// close ends the watch and returns all problems.
func (a *watcher) close() []string {
	a.stop()
	<-a.ended
	return a.problems
}

// forget lets the next state of each pod be the first.
func (a *watcher) forget() {
	a.mu.Lock()
	defer a.mu.Unlock()
	clear(a.last)
	clear(a.unready)
}

func (a *watcher) get(ctx context.Context, query string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, clusterURL+"/api/v1/pods"+query, http.NoBody)
	if err != nil {
		return nil, err
	}
	reply, err := a.client.Do(request)
	if err == nil && reply.StatusCode != http.StatusOK {
		err = errors.Join(errors.New(reply.Status), reply.Body.Close())
	}
	return reply, err
}

// list returns all pods.
func (a *watcher) list() ([]v1.Pod, error) {
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	reply, err := a.get(ctx, "")
	if err != nil {
		return nil, err
	}
	defer reply.Body.Close() //nolint:errcheck // it was read
	var all v1.PodList
	err = json.NewDecoder(reply.Body).Decode(&all)
	return all.Items, err
}

// watch reads events until the connection ends. It begins with the present pods.
func (a *watcher) watch(ctx context.Context) error {
	reply, err := a.get(ctx, "?watch=true")
	if err != nil {
		return err
	}
	defer reply.Body.Close() //nolint:errcheck // it was read
	for decoder := json.NewDecoder(reply.Body); ; {
		var e struct {
			Type   string
			Object *v1.Pod
		}
		if err := decoder.Decode(&e); err != nil {
			return err
		}
		if e.Object == nil || e.Object.UID == "" {
			return errors.New("the watch has expired")
		}
		a.see(e.Type, e.Object)
	}
}

func (a *watcher) see(event string, p *v1.Pod) {
	a.mu.Lock()
	defer a.mu.Unlock()
	uid := string(p.UID)
	before := a.last[uid]
	if event == "DELETED" {
		delete(a.last, uid)
		return
	}
	a.last[uid] = p
	a.seeInterrupted(p)
	if before == nil {
		return
	}
	problems := backward(before, p)
	if flip := a.readiness(before, p); flip != "" {
		problems = append(problems, flip)
	}
	for _, problem := range problems {
		problem = fmt.Sprintf("%s/%s: %s (%s to %s)", p.Namespace, p.Name, problem, before.ResourceVersion, p.ResourceVersion)
		a.note("backward: %s", problem)
		a.problems = append(a.problems, problem)
	}
}

// seeInterrupted notes containers whose start was interrupted.
func (a *watcher) seeInterrupted(p *v1.Pod) {
	for _, c := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
		for _, end := range []*v1.ContainerStateTerminated{c.State.Terminated, c.LastTerminationState.Terminated} {
			if end == nil || end.Reason != "StartError" || !strings.HasSuffix(end.Message, "context canceled") {
				continue
			}
			key := string(p.UID) + c.Name
			if a.interrupted[key] == nil {
				a.interrupted[key] = map[string]bool{}
			}
			a.interrupted[key][end.ContainerID] = true
		}
	}
}

// interruptions returns how often the start of a container was interrupted.
func (a *watcher) interruptions(p *v1.Pod, container string) int32 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return int32(len(a.interrupted[string(p.UID)+container])) // few
}

// backward returns what must not happen to a status.
func backward(before, after *v1.Pod) (all []string) {
	from, to := before.Status.Phase, after.Status.Phase
	order := map[v1.PodPhase]int{v1.PodPending: 1, v1.PodRunning: 2, v1.PodSucceeded: 3, v1.PodFailed: 3}
	// Without its sandbox, a pod is initialized again (kubelet: getPhase).
	initializes := to == v1.PodPending && len(after.Spec.InitContainers) > 0 &&
		slices.ContainsFunc(after.Status.Conditions, func(c v1.PodCondition) bool {
			return c.Type == v1.PodInitialized && c.Status == v1.ConditionFalse
		})
	if order[to] < order[from] && !initializes || order[from] == 3 && from != to {
		all = append(all, fmt.Sprintf("phase %s after %s", to, from))
	}
	if s, e := before.Status.StartTime, after.Status.StartTime; s != nil && !s.Equal(e) {
		all = append(all, fmt.Sprintf("started at %v, was %v", e, s))
	}
	if after.Status.ObservedGeneration < before.Status.ObservedGeneration {
		all = append(all, fmt.Sprintf("observed generation %d after %d",
			after.Status.ObservedGeneration, before.Status.ObservedGeneration))
	}
	for _, old := range before.Status.ContainerStatuses {
		for _, c := range after.Status.ContainerStatuses {
			if c.Name == old.Name {
				all = append(all, backwardContainer(old, c)...)
			}
		}
	}
	if len(after.Status.ContainerStatuses) < len(before.Status.ContainerStatuses) {
		all = append(all, "containers are missing")
	}
	return all
}

func backwardContainer(old, now v1.ContainerStatus) (all []string) {
	if now.RestartCount < old.RestartCount {
		all = append(all, fmt.Sprintf("%d restarts of %s, were %d", now.RestartCount, now.Name, old.RestartCount))
	}
	if o, n := old.State.Running, now.State.Running; o != nil && n != nil && n.StartedAt.Before(&o.StartedAt) {
		all = append(all, fmt.Sprintf("%s started at %v, was %v", now.Name, n.StartedAt, o.StartedAt))
	}
	if old.State.Running != nil && now.State.Waiting != nil && now.LastTerminationState.Terminated == nil {
		all = append(all, now.Name+" waits after it ran: "+now.State.Waiting.Reason)
	}
	if old.ContainerID != "" && now.ContainerID == "" && now.LastTerminationState.Terminated == nil {
		all = append(all, now.Name+" has lost its id")
	}
	return all
}

// readiness remembers the containers of pods that become unready. A pod that becomes ready again with the same containers
// should not have been unready. The controllers change the condition of a pod without a reason.
func (a *watcher) readiness(before, after *v1.Pod) string {
	was, is := readyCondition(before), readyCondition(after)
	uid := string(after.UID)
	switch {
	case was == nil || is == nil || after.Labels["week"] == "":
		// The probes of other pods may fail on a slow machine.
	case was.Status == v1.ConditionTrue && is.Status != v1.ConditionTrue && is.Reason != "":
		a.unready[uid] = containerIDs(before)
	case was.Status != v1.ConditionTrue && is.Status == v1.ConditionTrue:
		ids := a.unready[uid]
		delete(a.unready, uid)
		if ids != "" && ids == containerIDs(after) {
			return fmt.Sprintf("was not ready since %v: %s %s", was.LastTransitionTime, was.Reason, was.Message)
		}
	}
	return ""
}

func readyCondition(p *v1.Pod) *v1.PodCondition {
	for i := range p.Status.Conditions {
		if c := &p.Status.Conditions[i]; c.Type == v1.PodReady {
			return c
		}
	}
	return nil
}

func containerIDs(p *v1.Pod) (ids string) {
	for _, s := range p.Status.ContainerStatuses {
		ids += s.ContainerID + " "
	}
	return ids
}
