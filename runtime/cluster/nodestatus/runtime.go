package nodestatus

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	utilversion "k8s.io/apimachinery/pkg/util/version"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podctl/podctl/runtime/sleep"
)

// RuntimeFacts are the facts of the container runtime that a Node shows.
type RuntimeFacts struct {
	// Version is the name and the version of the runtime: containerd://2.1.4.
	Version string
	// Handlers are the runtime handlers by name. Features is nil for a runtime that reports none.
	Handlers []v1.NodeRuntimeHandler
	Features *v1.NodeFeatures
	// Images are the largest images (see imagesOf). They are nil until they have been listed.
	Images []v1.ContainerImage
}

// set sets the facts in a status.
func (f *RuntimeFacts) set(status *v1.NodeStatus) {
	status.NodeInfo.ContainerRuntimeVersion = cmp.Or(f.Version, status.NodeInfo.ContainerRuntimeVersion)
	status.RuntimeHandlers = slices.Clone(f.Handlers)
	if f.Features != nil {
		status.Features = f.Features.DeepCopy()
	}
	if f.Images != nil {
		status.Images = slices.Clone(f.Images)
	}
}

// RuntimeState is the state of the container runtime at its last answer.
type RuntimeState struct {
	// Begun is the time of the first try.
	Begun time.Time
	// Facts are nil before the first answer.
	Facts *RuntimeFacts
	// ReadyAt is the time of the last answer of a runtime that was ready.
	ReadyAt time.Time
	// Runtime and Network are the conditions of the runtime that are not met, in a kubelet's words; empty if they are.
	Runtime, Network string
}

// downAfter is how long a runtime may be silent before it counts as down (kubelet: maxWaitForContainerRuntime), also
// after the start. relistedWithin is how old the last complete list of its records may be (kubelet:
// genericPlegRelistThreshold).
const (
	downAfter      = 30 * time.Second
	relistedWithin = 3 * time.Minute
)

// Early reports whether the runtime has not answered, or has not listed its records (relisted), but may still do so
// (Facts.Early).
func (s *RuntimeState) Early(now, relisted time.Time) bool {
	return (s.ReadyAt.IsZero() || relisted.IsZero()) && now.Sub(s.Begun) < downAfter
}

// Causes returns the reasons for which a node is not ready, in a kubelet's words and order. relisted is when the
// records of the runtime were last listed completely. A zero time means never.
func (s *RuntimeState) Causes(now, relisted time.Time, shutdown bool) []string {
	var causes []string
	add := func(is bool, format string, args ...any) {
		if is {
			causes = append(causes, fmt.Sprintf(format, args...))
		}
	}
	never := s.ReadyAt.IsZero()
	add(never, "container runtime status check may not have completed yet")
	add(!never && now.Sub(s.ReadyAt) >= downAfter, "container runtime is down")
	add(relisted.IsZero(), "PLEG is not healthy: pleg has yet to be successful")
	// The age has whole minutes, because a message that changes every time is sent every time.
	age := now.Sub(relisted)
	add(!relisted.IsZero() && age > relistedWithin,
		"PLEG is not healthy: pleg was last seen active %v ago; threshold is %v",
		age.Truncate(time.Minute), relistedWithin)
	add(s.Runtime != "", "%s", s.Runtime)
	network := s.Network
	if s.Facts == nil {
		network = "network state unknown"
	}
	add(network != "", "%s", network)
	add(shutdown, "node is shutting down")
	return causes
}

// answered returns the state after an answer of the runtime (kubelet: updateRuntimeUp).
func (s RuntimeState) answered(now time.Time, reply *runtimeapi.StatusResponse, version string) RuntimeState {
	facts := RuntimeFacts{}
	if s.Facts != nil {
		facts = *s.Facts
	}
	facts.Version = cmp.Or(version, facts.Version)
	s.Network = unmet(reply, runtimeapi.NetworkReady, "container runtime network not ready")
	s.Runtime = unmet(reply, runtimeapi.RuntimeReady, "container runtime not ready")
	if s.Runtime == "" {
		s.ReadyAt = now
		facts.Handlers, facts.Features = handlersOf(reply), featuresOf(reply)
	}
	s.Facts = &facts
	return s
}

// unmet returns why a condition of the runtime is not met; empty if it is.
func unmet(reply *runtimeapi.StatusResponse, kind, text string) string {
	for _, c := range reply.GetStatus().GetConditions() {
		if c.GetType() != kind {
			continue
		}
		if c.GetStatus() {
			return ""
		}
		return fmt.Sprintf("%s: %s=%t reason:%s message:%s", text, kind, false, c.GetReason(), c.GetMessage())
	}
	return text + ": <nil>"
}

func handlersOf(reply *runtimeapi.StatusResponse) []v1.NodeRuntimeHandler {
	var all []v1.NodeRuntimeHandler
	for _, h := range reply.GetRuntimeHandlers() {
		mounts, users := h.GetFeatures().GetRecursiveReadOnlyMounts(), h.GetFeatures().GetUserNamespaces()
		all = append(all, v1.NodeRuntimeHandler{Name: h.GetName(), Features: &v1.NodeRuntimeHandlerFeatures{
			RecursiveReadOnlyMounts: &mounts, UserNamespaces: &users,
		}})
	}
	slices.SortStableFunc(all, func(a, b v1.NodeRuntimeHandler) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

func featuresOf(reply *runtimeapi.StatusResponse) *v1.NodeFeatures {
	if reply.GetFeatures() == nil {
		return nil
	}
	groups := reply.GetFeatures().GetSupplementalGroupsPolicy()
	return &v1.NodeFeatures{SupplementalGroupsPolicy: &groups}
}

// Limits of the images of a Node (kubelet: nodeStatusMaxImages, MaxNamesPerImageInNodeStatus).
const (
	imagesMax = 50
	namesMax  = 5
)

// imagesOf returns the images for a Node: the 50 largest, each with at most five names, digests first. The result is
// never nil, and its order depends only on the images.
func imagesOf(images []*runtimeapi.Image) []v1.ContainerImage {
	images = slices.Clone(images)
	slices.SortFunc(images, func(a, b *runtimeapi.Image) int {
		return cmp.Or(cmp.Compare(b.GetSize(), a.GetSize()), cmp.Compare(b.GetId(), a.GetId()))
	})
	images = images[:min(len(images), imagesMax)]
	all := make([]v1.ContainerImage, 0, len(images))
	for _, image := range images {
		names := slices.Concat(slices.Sorted(slices.Values(image.GetRepoDigests())),
			slices.Sorted(slices.Values(image.GetRepoTags())))
		size := int64(min(image.GetSize(), 1<<62)) // bounded
		all = append(all, v1.ContainerImage{Names: names[:min(len(names), namesMax)], SizeBytes: size})
	}
	return all
}

// Runtime reads the state of the container runtime again and again. State may be called from any goroutine.
type Runtime struct {
	Client runtimeapi.RuntimeServiceClient
	Images runtimeapi.ImageServiceClient
	// Changed is called when a condition of the runtime has changed, and at its first answer. It must not block.
	Changed func()

	mu     sync.Mutex
	state  RuntimeState
	images []v1.ContainerImage
}

// statusEvery is the time between two questions for the status of the runtime, and imagesEvery for its images and its
// version (kubelet: updateRuntimeUp, imageCache). Until the runtime is ready, but at most for fastFor, the question is
// repeated after fastEvery (kubelet: fastStatusUpdateOnce, nodeReadyGracePeriod).
const (
	statusEvery = 5 * time.Second
	imagesEvery = 30 * time.Second
	fastEvery   = 100 * time.Millisecond
	fastFor     = 2 * time.Minute
)

// State returns the state at the last answer.
func (r *Runtime) State() RuntimeState {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.state
	if s.Facts != nil {
		facts := *s.Facts
		facts.Images = r.images
		s.Facts = &facts
	}
	return s
}

// Run reads the state until the context ends.
func (r *Runtime) Run(ctx context.Context) {
	r.mu.Lock()
	r.state.Begun = time.Now()
	r.mu.Unlock()
	var images sync.WaitGroup
	defer images.Wait()
	images.Go(func() { every(ctx, func() time.Duration { return imagesEvery }, r.readImages) })
	every(ctx, func() time.Duration {
		if s := r.State(); s.ReadyAt.IsZero() && time.Since(s.Begun) < fastFor {
			return fastEvery
		}
		return statusEvery
	}, r.readStatus)
}

func every(ctx context.Context, pause func() time.Duration, do func(context.Context)) {
	for ctx.Err() == nil {
		do(ctx)
		_ = sleep.For(ctx, pause()) // the loop checks the context
	}
}

func (r *Runtime) readStatus(ctx context.Context) {
	reply, err := r.Client.Status(ctx, &runtimeapi.StatusRequest{})
	if err != nil {
		return
	}
	version := ""
	if s := r.State(); s.Facts == nil || s.Facts.Version == "" {
		version = r.version(ctx)
	}
	r.mu.Lock()
	before := r.state
	r.state = before.answered(time.Now(), reply, version)
	now := r.state
	r.mu.Unlock()
	if before.Facts == nil || before.Runtime != now.Runtime || before.Network != now.Network {
		r.Changed()
	}
}

// version returns the name and the version of the runtime; empty if it does not answer.
func (r *Runtime) version(ctx context.Context) string {
	reply, err := r.Client.Version(ctx, &runtimeapi.VersionRequest{})
	if err != nil {
		return ""
	}
	return reply.GetRuntimeName() + "://" + plainVersion(reply.GetRuntimeVersion())
}

// plainVersion returns a version without the addition of a distribution: 1.6.20 for 1.6.20~ds1 (kubelet:
// newRuntimeVersion). A text that is no version is returned as it is.
func plainVersion(text string) string {
	if v, err := utilversion.ParseSemantic(text); err == nil {
		return v.String()
	}
	if v, err := utilversion.ParseGeneric(text); err == nil {
		return v.String()
	}
	return text
}

func (r *Runtime) readImages(ctx context.Context) {
	version := r.version(ctx)
	reply, err := r.Images.ListImages(ctx, &runtimeapi.ListImagesRequest{})
	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil {
		r.images = imagesOf(reply.GetImages())
	}
	if r.state.Facts != nil && version != "" {
		facts := *r.state.Facts
		facts.Version = version
		r.state.Facts = &facts
	}
}
