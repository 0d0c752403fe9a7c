package why

import (
	"fmt"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/plan"
)

// changes names what would change the state of a pod.
type changes struct{ *Input }

func (x changes) fromCluster() bool { return x.Desired.FromCluster() }

// deleteCommand returns the command that deletes the pod.
func (x changes) deleteCommand() string {
	if x.fromCluster() {
		return fmt.Sprintf("kubectl delete pod -n %s %s", x.Pod.Namespace, x.Pod.Name)
	}
	return fmt.Sprintf("podctl delete %s", x.Pod)
}

// edit returns how to change the manifest of the pod.
func (x changes) edit() string {
	switch {
	case x.fromCluster():
		return "an edit of the pod, or of its workload, in the API server"
	case x.Desired.Owner != "":
		return "an edit of " + x.Desired.Source
	}
	return "podctl apply of an edited manifest"
}

// afterPass returns the next pass as the change. verb is the effect of the pass on the container, such as "starts".
func (x changes) afterPass(verb string) []string {
	if x.Agent != nil {
		return []string{"the next pass of the agent " + verb + " it"}
	}
	return []string{"podctl apply " + verb + " it; no agent keeps the pod"}
}

func (x changes) afterEviction() []string {
	if x.fromCluster() {
		return []string{x.deleteCommand() + "; until then it stays Failed"}
	}
	return []string{x.edit(), "podctl restart " + x.Pod.String()}
}

func (x changes) afterRejection() []string {
	if x.fromCluster() {
		return []string{x.deleteCommand() + "; until then it stays Failed"}
	}
	return []string{x.edit(), "other settings of the node, such as --max-pods or --system-reserved"}
}

func (x changes) afterEnd() []string {
	if x.fromCluster() {
		return []string{"nothing: it never runs again, and its controller creates another pod"}
	}
	return []string{x.deleteCommand() + ", and then apply it again"}
}

func (x changes) afterProbe() []string {
	if x.Agent != nil {
		return []string{"the agent repeats the probe at its period"}
	}
	return []string{"podctl probe " + x.Pod.String() + " repeats the probe"}
}

// afterHold returns what ends a hold.
func (x changes) afterHold(h *plan.Hold) []string {
	switch {
	case h.Resize != nil, h.Admission && x.Plan.Rejection == nil:
		return []string{"enough free resources on the node", x.edit()}
	case h.MissingObject:
		return []string{"the missing object: " + x.applyCommand(), x.edit()}
	case h.Delay != nil:
		return []string{
			"the end of the delay",
			fmt.Sprintf("podctl restart %s %s, which starts it at once", x.Pod, h.Container),
			x.edit(),
		}
	}
	if ref, found := podspec.FindContainer(x.Status, h.Container); found {
		return x.afterFailure(h.Reason, ref)
	}
	return x.afterPodHold(h.Reason)
}

// applyCommand returns the command that creates an object.
func (x changes) applyCommand() string {
	if x.fromCluster() {
		return "kubectl apply"
	}
	return "podctl apply"
}

// afterPodHold returns what ends a hold of the whole pod.
func (x changes) afterPodHold(reason model.Reason) []string {
	switch reason { //nolint:exhaustive // the others have no special change
	case model.NetworkNotReady:
		return []string{
			"a ready network of the runtime: podctl doctor shows its state", "hostNetwork: true in the manifest",
		}
	case model.HostPortConflict:
		return []string{"a free port: stop the other user of the port", x.edit()}
	case model.CreatePodSandboxError:
		return []string{"a runtime with that handler", x.edit()}
	case model.Deleted:
		if x.fromCluster() {
			return []string{"the next pass of the agent, which finishes the deletion"}
		}
		return []string{x.deleteCommand() + ", which finishes the deletion"}
	}
	return []string{x.edit()}
}

// afterFailure returns what lets a container start after a failure.
func (x changes) afterFailure(reason model.Reason, ref podspec.ContainerRef) []string {
	switch reason { //nolint:exhaustive // the others have no special change
	case model.ErrImagePull, model.ImagePullBackOff, model.ErrImageNeverPull:
		changes := []string{"an image on disk: podctl image pull or podctl image load", x.edit()}
		if reason != model.ErrImageNeverPull {
			changes = append([]string{"the next try"}, changes...)
		}
		return changes
	case model.InvalidImageName:
		return []string{x.edit()}
	case model.ProbeStale:
		return []string{"a new result: podctl probe " + x.Pod.String()}
	case model.FailedMount, model.CreateContainerConfigError:
		return []string{"the missing object, path or setting", x.edit()}
	}
	return []string{fmt.Sprintf("podctl restart %s %s", x.Pod, ref.Name), x.edit()}
}
