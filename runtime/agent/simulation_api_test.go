package agent

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/agent/podworkers"
	"github.com/podctl/podctl/runtime/agent/sources"
	"github.com/podctl/podctl/runtime/executor"
	"github.com/podctl/podctl/runtime/model"
)

// apiServer is a source whose pods are identified by UID, like an API server. It adds, edits, ends and drops pods, and
// adds new ones with the names of others. It may be away when the agent starts.
type apiServer struct {
	*life
	// pods are the pods in the API. ending has those that are being deleted, with their grace periods.
	pods   map[types.UID]*podspec.Desired
	ending map[types.UID]int64
	added  int
	// backup are the pods of an old backup, which may be restored.
	backup map[types.UID]*podspec.Desired
	// sent is the last update that this agent has received. It is nil until the first complete one.
	sent *sources.Update
	// usable are the pods whose manifest this agent was sent.
	usable map[types.UID]bool
	// asked are the pods that this agent was asked to end. No later update cancels that.
	asked map[types.UID]bool
}

const apiSource = "api"

func newAPIServer(l *life) *apiServer {
	return &apiServer{life: l, pods: map[types.UID]*podspec.Desired{}, ending: map[types.UID]int64{}}
}

// byUID is the agent's view of the source.
type byUID struct{ named }

func (byUID) Rules() sources.Rules { return sources.Rules{UIDs: true} }

// isAPI reports whether a pod is one of the API server.
func isAPI(uid types.UID) bool { return strings.HasPrefix(string(uid), "u") }

// started handles the start of an agent. The source may report at once that it has read nothing yet.
func (s *apiServer) started() {
	s.sent, s.asked, s.usable = nil, map[types.UID]bool{}, map[types.UID]bool{}
	if s.rand.IntN(2) == 0 {
		u := sources.Update{Source: apiSource}
		s.post(apiSource, "api is away", func() { s.agent.handleSourceUpdate(u) })
	}
}

// send sends an update with all pods. The agent gets no version of those in unread, because none can be used. The
// source keeps the last usable version that this agent has received, so these are pods of an earlier agent.
func (s *apiServer) send(unread ...types.UID) {
	u := sources.Update{Source: apiSource, Complete: true, Ending: maps.Clone(s.ending)}
	for _, uid := range sortedUIDs(s.pods) {
		if slices.Contains(unread, uid) && !s.usable[uid] && s.world.pods[uid] != nil {
			u.Unread = append(u.Unread, string(uid))
			continue
		}
		u.Pods = append(u.Pods, s.pods[uid])
		s.usable[uid] = true
	}
	s.post(apiSource, "api tells", func() {
		s.sent = &u
		for uid := range u.Ending {
			s.asked[uid] = true
		}
		s.agent.handleSourceUpdate(u)
	})
}

// some returns a pod in the API. It is empty if there is none.
func (s *apiServer) some() types.UID {
	all := sortedUIDs(s.pods)
	if len(all) == 0 {
		return ""
	}
	return all[s.rand.IntN(len(all))]
}

// act makes a random event happen.
func (s *apiServer) act() {
	uid := s.some()
	switch n := s.rand.IntN(18); {
	case n < 4 || uid == "":
		s.added++
		name, _ := s.life.some()
		s.set(name, types.UID(fmt.Sprintf("u%d-%s", s.added, name)))
	case n < 6:
		s.set(s.pods[uid].Pod.Name, uid)
	case n < 10:
		s.end(uid)
	case n < 11:
		s.drop(uid)
	case n < 13:
		s.dropEnded()
	case n == 13 && s.rand.IntN(4) == 0:
		s.note("the API server is emptied")
		for _, uid := range sortedUIDs(s.pods) {
			s.drop(uid)
		}
	case n == 14:
		s.backup = maps.Clone(s.pods)
	case n == 15 && s.rand.IntN(2) == 0:
		s.note("an old backup of the API server is restored")
		s.pods, s.ending = map[types.UID]*podspec.Desired{}, map[types.UID]int64{}
		for _, uid := range sortedUIDs(s.backup) {
			s.set(s.backup[uid].Pod.Name, uid)
		}
	case s.runs(uid) != nil:
		s.exits(s.runs(uid))
	}
	switch s.rand.IntN(12) {
	case 0, 1, 2, 3, 4:
		s.send()
	case 5:
		s.send(s.some(), s.some())
	}
}

// set adds or edits a pod.
func (s *apiServer) set(name string, uid types.UID) {
	s.pods[uid] = s.manifest(apiSource, name, string(uid), s.rand.IntN(3))
	s.note("api has %s", versionOf(s.pods[uid]))
}

// end begins or shortens the deletion of a pod.
func (s *apiServer) end(uid types.UID) {
	grace := int64(1 + s.rand.IntN(30))
	if before, ends := s.ending[uid]; ends {
		grace = min(grace, before)
	}
	s.ending[uid] = grace
	s.note("api ends %s in %d s", uid, grace)
}

func (s *apiServer) drop(uid types.UID) {
	delete(s.pods, uid)
	delete(s.ending, uid)
	s.note("api has no %s", uid)
}

// dropEnded drops the pods that have ended on the node.
func (s *apiServer) dropEnded() {
	for _, uid := range sortedUIDs(s.ending) {
		if p := s.world.pods[uid]; p != nil && p.end != nil && p.end.Done {
			s.drop(uid)
		}
	}
}

// received reports whether the last update that the agent has received has a pod, and whether the pod ends.
func (s *apiServer) received(uid types.UID) (wanted, ends bool) {
	if s.sent == nil {
		return false, false
	}
	wanted = slices.ContainsFunc(s.sent.Pods, func(d *podspec.Desired) bool { return d.Pod.UID == uid })
	wanted = wanted || slices.Contains(s.sent.Unread, string(uid))
	_, ends = s.sent.Ending[uid]
	return wanted, ends
}

// mayBegin checks a pass of a pod of the API server.
func (s *apiServer) mayBegin(p *podworkers.Pass) {
	uid := p.Ref.UID
	wanted, ends := s.received(uid)
	before := s.world.pods[uid]
	begun := before != nil && before.end != nil
	switch {
	case p.Kind == podworkers.End && !s.asked[uid] && !begun:
		s.wrong("%s is ended without a request", uid)
	case p.Kind == podworkers.End && p.Grace == nil:
		s.wrong("%s is ended without a grace period", uid)
	case p.Kind == podworkers.Sync && s.agent.reconciler.stored[uid].End != nil:
		s.wrong("a pass begins for %s, although its end is known", uid)
	case p.Kind == podworkers.Sync && s.sent != nil && (!wanted || ends):
		s.wrong("a pass begins for %s, which is not wanted any more", uid)
	}
}

// wantsDeletion reports whether the absence of a pod is known.
func (s *apiServer) wantsDeletion(uid types.UID) bool {
	wanted, _ := s.received(uid)
	return s.sent != nil && !wanted
}

// addWanted adds the state that the pods of the API server must reach. No backup cancels an end.
func (s *apiServer) addWanted(all map[types.UID]string) {
	for uid, d := range s.pods {
		all[uid] = versionOf(d)
		if _, ends := s.ending[uid]; ends || s.world.pods[uid] != nil && s.world.pods[uid].end != nil {
			all[uid] = "has ended"
		}
	}
}

// settle sends the final state. Some ended pods stay, as those with finalizers do.
func (s *apiServer) settle() {
	s.send()
	s.rest(2 * time.Minute)
	if s.rand.IntN(2) == 0 {
		s.dropEnded()
	}
	s.send()
}

// endPod makes a pass that ends a pod (plan.Options.End). It stops the containers, or once none runs, removes the rest
// except the records.
func (w *world) endPod(ctx context.Context, d *podspec.Desired, seen []container) (*executor.Outcome, error) {
	uid := d.Pod.UID
	before := w.pods[uid]
	if before == nil || before.end == nil || versionOf(before.desired) != versionOf(d) {
		if err := w.write("end of "+versionOf(d), func() {
			w.rules.mayWrite(w.current.pass, d)
			kept := *d
			kept.Stored = true
			w.pods[uid] = &record{desired: &kept, end: &model.End{}}
		}); err != nil {
			return nil, err
		}
	}
	var steps []step
	for i := range seen {
		if seen[i].running {
			steps = append(steps, w.stops(w.find(seen[i].id), d))
		}
	}
	stopped, done := len(steps) == 0, w.pods[uid].end.Done
	if stopped && !done {
		steps = append(steps, step{"reclaim " + string(uid), func() {}})
	}
	outcome := w.execute(ctx, model.RefOf(d.Pod), steps)
	outcome.Desired, outcome.Plan.End = d, &model.End{Done: stopped}
	if !stopped || done || len(outcome.Failed) > 0 {
		return outcome, nil
	}
	return outcome, w.write("ended "+string(uid), func() { w.pods[uid].end = &model.End{Done: true} })
}
