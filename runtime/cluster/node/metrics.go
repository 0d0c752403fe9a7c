package node

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/podctl/podctl/runtime/agent"
	"github.com/podctl/podctl/runtime/agent/metrics"
	"github.com/podctl/podctl/runtime/cluster/certificates"
	"github.com/podctl/podctl/runtime/cluster/nodemetrics"
	"github.com/podctl/podctl/runtime/cluster/nodestatus"
	"github.com/podctl/podctl/runtime/executor"
	"github.com/podctl/podctl/runtime/kubeletapi/access"
	"github.com/podctl/podctl/runtime/machine"
	"github.com/podctl/podctl/runtime/plan"
	"github.com/podctl/podctl/runtime/volume"
)

// newMetrics returns the metrics of the node.
func newMetrics(n *node) *nodemetrics.Metrics {
	now := n.member.Now()
	n.started.times = nodemetrics.Start{Booted: machine.Booted(now), Begun: now}
	s := nodemetrics.Settings{
		Node: n.NodeName, Version: nodestatus.Version(n.member.Version), Now: n.member.Now,
		Start: func() nodemetrics.Start { return n.started.until(n.manager.newest()) },
	}
	if r := n.client.Rotation; r != nil {
		s.ClientExpiry = func() time.Time { return expiryOf(r) }
	}
	if n.Server.CertFile == "" && n.Server.RotateCertificates {
		s.ServerExpiry = func() time.Time { return expiryOf(n.certificates.serving) }
	}
	return nodemetrics.New(s)
}

// expiryOf returns when a certificate expires; zero if there is none.
func expiryOf(r *certificates.Rotation) time.Time {
	if r == nil {
		return time.Time{}
	}
	if cert := r.State().Certificate; cert != nil {
		return cert.NotAfter
	}
	return time.Time{}
}

// started has the times of the node's start.
type started struct {
	mu    sync.Mutex
	times nodemetrics.Start
}

// connect notes that the agent runs and the node begins to register.
func (s *started) connect(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.times.Connected = now
}

// register notes the first registration.
func (s *started) register(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.times.Registered.IsZero() {
		s.times.Registered = now
	}
}

// until returns the times of the node's start. now is the Node in the API; nil if it is not known. It may have been
// ready before, if only the agent was restarted.
func (s *started) until(now *v1.Node) nodemetrics.Start {
	s.mu.Lock()
	defer s.mu.Unlock()
	if since := readySince(now); s.times.Ready.IsZero() && !s.times.Registered.IsZero() && !since.IsZero() {
		s.times.Ready = since
		if since.Before(s.times.Registered) {
			s.times.Ready = s.times.Registered
		}
	}
	return s.times
}

// readySince returns since when a Node is ready; zero if it is not, or if it is nil.
func readySince(now *v1.Node) time.Time {
	if now == nil {
		return time.Time{}
	}
	for i := range now.Status.Conditions {
		if c := &now.Status.Conditions[i]; c.Type == v1.NodeReady && c.Status == v1.ConditionTrue {
			return c.LastTransitionTime.Time
		}
	}
	return time.Time{}
}

// countVolume counts work on a volume.
func countVolume(n *node, e *agent.Event) {
	step := e.Step.Step
	if step == nil || e.Step.Kind != executor.StepDone && e.Step.Kind != executor.StepFailed {
		return
	}
	operation := map[plan.Kind]string{
		plan.PrepareVolume: "volume_mount", plan.RemoveVolume: "volume_unmount",
	}[step.Kind]
	pod := n.source.Get(e.Pod.UID)
	if operation == "" || pod == nil {
		return
	}
	for i := range pod.Spec.Volumes {
		if vol := &pod.Spec.Volumes[i]; vol.Name == step.Volume {
			n.metrics.VolumeChanged(volume.PluginName(vol), operation, e.Step.Took, e.Step.Err)
		}
	}
}

// pages are the pages of metrics. Those of the node also count requests.
type pages struct {
	*nodemetrics.Metrics

	agent *metrics.Metrics
}

// OthersHandler serves the metrics of the agent and of the node.
func (p pages) OthersHandler() http.Handler { return p.Handler(p.agent.Others()) }

// ProbesHandler serves the metrics of probes.
func (p pages) ProbesHandler() http.Handler { return p.agent.ProbesHandler() }

// countedReviews counts requests to the API server about clients.
type countedReviews struct {
	access.Reviews

	metrics *nodemetrics.Metrics
	now     func() time.Time
}

// Token asks about a token.
func (c countedReviews) Token(ctx context.Context, token string) (*user.DefaultInfo, error) {
	began := c.now()
	u, err := c.Reviews.Token(ctx, token)
	c.metrics.Reviewed(nodemetrics.Token, codeOf(err), c.now().Sub(began))
	return u, err
}

// Access asks about a permission.
func (c countedReviews) Access(ctx context.Context, spec *authorizationv1.SubjectAccessReviewSpec) (bool, error) {
	began := c.now()
	allowed, err := c.Reviews.Access(ctx, spec)
	c.metrics.Reviewed(nodemetrics.Permission, codeOf(err), c.now().Sub(began))
	return allowed, err
}

// codeOf returns the code of a response; 0 if there was none.
func codeOf(err error) int {
	if err == nil {
		return http.StatusCreated
	}
	if status := apierrors.APIStatus(nil); errors.As(err, &status) {
		return int(status.Status().Code)
	}
	return 0
}
