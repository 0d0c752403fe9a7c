package lifecycle

import (
	"context"
	"fmt"
	"os"
	"slices"

	"github.com/podctl/podctl/commands/session"
	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/agent/api"
	"github.com/podctl/podctl/runtime/controller"
	"github.com/podctl/podctl/runtime/model"
)

// noteReturns says of pods that were deleted which of them the agent makes again, because a source
// of it has their manifest.
func noteReturns(ctx context.Context, sess *session.Session, deleted []model.PodRef) {
	if len(deleted) == 0 {
		return
	}
	kept := sess.AgentPods(ctx)
	for _, ref := range deleted {
		// Of a pod of a workload it is said with the workload (noteOwners).
		if p := kept[ref.UID]; hasSource(p) && p.Source != controller.Keeper {
			sess.IO.Note("note: pod %s comes back: its manifest is in %s; remove it from there to delete the pod", ref, p.File)
		}
	}
}

// takenBack says of manifests which of them the agent does not leave in force: those of pods whose
// manifest a source of it has in another file.
func (o *planOptions) takenBack(ctx context.Context, sess *session.Session, pods []*podspec.Desired) map[model.PodRef]string {
	given := func(d *podspec.Desired) bool { return !d.Stored && !d.Rebuilt && d.Keeper != controller.Keeper }
	if !slices.ContainsFunc(pods, given) {
		return nil
	}
	kept, texts := sess.AgentPods(ctx), map[model.PodRef]string{}
	for _, d := range pods {
		p := kept[d.Pod.UID]
		if given(d) && hasSource(p) && (!sameFile(d.Source, p.File) || len(o.ConfigMaps) > 0) {
			texts[model.RefOf(d.Pod)] = fmt.Sprintf("the agent keeps this pod as %s says: its next pass takes other changes back; change them there", p.File)
		}
	}
	return texts
}

// hasSource reports whether a source of the agent wants a pod.
func hasSource(p *api.Pod) bool { return p != nil && p.Source != "" }

// sameFile reports whether two paths lead to one file.
func sameFile(a, b string) bool {
	if a == b {
		return true
	}
	one, err := os.Stat(a)
	if err != nil {
		return false
	}
	other, err := os.Stat(b)
	return err == nil && os.SameFile(one, other)
}
