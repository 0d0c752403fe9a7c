package pods

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podctl/podctl/podspec/quote"
	"github.com/podctl/podctl/runtime/model"
)

// Rejection is a pod that never runs, because podctl cannot use it.
type Rejection struct {
	// Pod has the metadata of the pod without labels and annotations, and its status.
	Pod *v1.Pod
	// Message is why.
	Message string
}

// Status returns the pod with the status of a rejected pod (kubelet: rejectPod).
func (r *Rejection) Status() *v1.Pod {
	pod := *r.Pod
	refused := model.Rejection{Reason: model.UnsupportedPodFeature, Message: r.Message}
	pod.Status = v1.PodStatus{Phase: v1.PodFailed, Reason: string(refused.Reason), Message: refused.StatusMessage()}
	return &pod
}

// isRejected reports whether the pod must never run, because no version of it could be used. The path of a request must
// be able to name it.
func (c *copies) isRejected(e *entry) bool {
	pod := e.pod
	return e.err != nil && e.desired == nil && !e.recorded && c.byUID[pod.UID] == e &&
		pod.Namespace != "" && pod.Name != "" && pod.UID != "" &&
		len(content.IsPathSegmentName(pod.Namespace)) == 0 && len(content.IsPathSegmentName(pod.Name)) == 0
}

func (e *entry) rejection() Rejection {
	return Rejection{Pod: e.pod, Message: quote.OneLine(e.err.Error())}
}

// rejected returns the pods that must be rejected.
func (c *copies) rejected() (all []Rejection) {
	for _, e := range c.sorted() {
		if c.isRejected(e) {
			all = append(all, e.rejection())
		}
	}
	return all
}

// announce returns the rejection of a pod; nil if the pod is not rejected, or if announce has returned it before.
func (c *copies) announce(uid types.UID) *Rejection {
	e := c.byUID[uid]
	if e == nil || e.announced || !c.isRejected(e) {
		return nil
	}
	e.announced = true
	return new(e.rejection())
}
