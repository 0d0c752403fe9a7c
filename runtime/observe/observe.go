package observe

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/podspec/redaction"
	"github.com/podctl/podctl/runtime/cgroup"
	"github.com/podctl/podctl/runtime/cri"
	"github.com/podctl/podctl/runtime/criconfig"
	"github.com/podctl/podctl/runtime/imageaccess"
	"github.com/podctl/podctl/runtime/images"
	"github.com/podctl/podctl/runtime/logfile"
	"github.com/podctl/podctl/runtime/machine"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/objects"
	"github.com/podctl/podctl/runtime/proof"
	"github.com/podctl/podctl/runtime/snapshot"
	"github.com/podctl/podctl/runtime/state"
	"github.com/podctl/podctl/runtime/volume"
)

// World is the environment of podctl: a runtime, its own files, the pods' cgroups and the clock.
type World struct {
	Client  *cri.Client
	Layout  state.Layout
	Cgroups cgroup.Groups
	Now     func() time.Time
	// Objects are the applied ConfigMaps and Secrets; nil for none.
	Objects *objects.Store
	// Cluster are the objects for pods of the API server; nil for none.
	Cluster objects.Provider
	// Logs are the limits of the logs of containers.
	Logs logfile.Limits
	// Pulls is the maximum number of concurrent image pulls; zero means no limit.
	Pulls int
	// Exits are processes whose end the runtime's records do not show yet; nil for none.
	Exits *Exits
	// Reserved are ports of the node that no pod can use.
	Reserved []machine.Reserved
	// Devices gives devices of plugins to containers; nil for none.
	Devices model.DeviceManager
}

// Observer reads the state of pods from a runtime and podctl's own files. It changes nothing.
type Observer struct {
	world   World
	host    *Host
	digests *Digests
	// adopts reports whether pods of another runtime may move to this one.
	adopts bool
	// Conditions returns the conditions of a pod in the API; nil if they are unknown. It may be nil.
	Conditions func(ctx context.Context, uid types.UID) []v1.PodCondition
	// Reported returns the status of a pod, or of its mirror pod, in the API; nil if it is unknown. It may be nil.
	Reported func(*podspec.Desired) *v1.PodStatus
	// pulls has the credentials with which images were pulled.
	pulls *state.PullRecords
	// taken has the resources that each pod uses on the node; nil for a pod that uses none.
	taken *state.Summaries[*model.Admitted]
}

// New returns an Observer.
func New(w World, host *Host, digests *Digests) *Observer {
	taken := state.NewSummaries(w.Layout, func(c *state.Checkpoint) *model.Admitted {
		return snapshot.TakenBy(&c.Memory)
	})
	return &Observer{world: w, host: host, digests: digests, pulls: state.NewPullRecords(w.Layout), taken: taken}
}

// UseCluster sets the objects for pods of the API server. It is called before the first pass.
func (o *Observer) UseCluster(p objects.Provider) { o.world.Cluster = p }

// UseDevices sets the manager of devices. It is called before the first pass.
func (o *Observer) UseDevices(m model.DeviceManager) { o.world.Devices = m }

// Observe reads everything that a decision about one pod needs. Independent queries run concurrently. Their number does
// not depend on other pods of the node.
func (o *Observer) Observe(ctx context.Context, ref model.PodRef, desired *podspec.Desired) (*snapshot.Pod, error) {
	j, err := o.world.Layout.Pod(ref.UID).Checkpoint().Read()
	if err != nil {
		return nil, fmt.Errorf("observing pod %s: %w", ref, err)
	}
	return o.observeWith(ctx, ref, desired, j, nil)
}

// observeWith is like Observe, with podctl's record of the pod, and with the lists of all pods if they exist.
func (o *Observer) observeWith(
	ctx context.Context, ref model.PodRef, desired *podspec.Desired, j *state.Checkpoint, lists *nodeLists,
) (s *snapshot.Pod, err error) {
	ctx, end := cri.StartSpan(ctx, "observe")
	defer func() { end(err) }()
	key, err := o.digests.Key()
	if err == nil {
		err = checkRecord(ref, j)
	}
	if err != nil {
		return nil, fmt.Errorf("observing pod %s: %w", ref, err)
	}
	j.Memory = j.InBoot(o.host.from.BootID())
	desired.UseKey(key)
	j.Applied.UseKey(key)
	s = &snapshot.Pod{Checkpoint: j, TakenAt: o.world.Now().UTC().Round(0), Pod: ref}
	known, imageNames := "", []string(nil)
	if desired != nil {
		imageNames = podspec.ImageNames(desired.Pod)
		if j.LastRun != nil {
			known = j.LastRun.Sandbox
		}
	}
	pod := o.world.Layout.Pod(ref.UID)
	hooks := pod.Hooks().Running()
	var (
		runtimeFacts RuntimeFacts
		devices      *model.Devices
	)
	group, groupCtx := errgroup.WithContext(ctx)
	group.Go(func() (err error) { runtimeFacts, err = o.host.RuntimeFacts(groupCtx); return err })
	group.Go(func() error { return o.observeRecords(groupCtx, ref, s, known, lists) })
	group.Go(func() (err error) { s.Images, err = o.observeImages(groupCtx, desired, imageNames); return err })
	if desired != nil && lists == nil { // A list of all pods needs no choice of devices.
		group.Go(func() error {
			devices = observeDevices(groupCtx, o.world.Devices, model.DeviceRequestOf(desired.Pod))
			return nil
		})
	}
	redactor := j.Redactor(desired)
	if err := group.Wait(); err != nil {
		return nil, fmt.Errorf("observing pod %s: %w", ref, redactor.Error(err))
	}
	resolveInFlight(s)
	markStarting(s, hooks, pod.Hooks().Running())
	s.Runtime = runtimeFacts.Runtime
	s.Redact(redactor)
	if !podspec.KnowsSecrets(j.Applied, desired) {
		s.Withhold()
	}
	s.Node = new(o.host.NodeOf(desired))
	if addReported(o.Reported, desired, s); desired != nil {
		o.observeDisk(s, redactor, volume.Context{Pod: pod, Desired: desired, Allocatable: s.Node.Allocatable})
		s.Faults.Devices = devices
	}
	return s, nil
}

// markStarting marks the containers whose postStart hook runs. A mark counts if it existed before or after the records
// were read, because a hook may begin or end in between. A container that failed its hook must not appear as started.
func markStarting(s *snapshot.Pod, before, after map[string]bool) {
	for i := range s.Containers {
		id := s.Containers[i].Status.GetId()
		s.Containers[i].Starting = before[id] || after[id]
	}
}

// observeImages looks up every image of the pod once. It returns nil without names.
func (o *Observer) observeImages(
	ctx context.Context, desired *podspec.Desired, names []string,
) ([]snapshot.Image, error) {
	if names == nil {
		return nil, nil
	}
	found := make([]snapshot.Image, len(names))
	group, ctx := errgroup.WithContext(ctx)
	for i, name := range names {
		group.Go(func() error {
			info, present, err := images.Status(ctx, o.world.Client.Images, name)
			if present {
				found[i] = snapshot.Image{
					Reference: info.Reference,
					ID:        info.ID,
					User:      info.User,
					Digests:   info.RepoDigests,
				}
				found[i].Unverified = o.isUnverified(desired, name, info.ID)
			}
			if bad := (*images.Error)(nil); errors.As(err, &bad) && bad.Invalid {
				// The name is invalid in every runtime. The pull reports it; the other images are not affected.
				return nil
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, cri.Wrap("asking for its images", err)
	}
	return slices.DeleteFunc(found, func(i snapshot.Image) bool { return i.ID == "" }), nil
}

// isUnverified reports whether a pod of the API server must pull an image that is present. Files and commands of the
// machine's administrator may use every image. Pull secrets that cannot be read prove nothing, and fail the pull.
func (o *Observer) isUnverified(desired *podspec.Desired, name, id string) bool {
	policy := o.host.ImagePolicy()
	if !desired.FromCluster() || policy.Effective() == imageaccess.NeverVerify {
		return false
	}
	own, _ := images.Secrets(name, images.PullSecrets(desired))
	return policy.Unverified(o.pulls.Read(name, id), own)
}

// Snapshot observes a pod, and all images of the runtime beside those that the pod names, so that it also serves as
// input for an edited manifest.
func (o *Observer) Snapshot(ctx context.Context, desired *podspec.Desired) (*snapshot.Pod, error) {
	s, err := o.Observe(ctx, model.RefOf(desired.Pod), desired)
	if err != nil {
		return nil, err
	}
	reply, err := o.world.Client.Images.ListImages(ctx, &runtimeapi.ListImagesRequest{})
	if err != nil {
		return nil, fmt.Errorf("listing images: %w", err)
	}
	for _, img := range reply.GetImages() {
		for _, name := range slices.Concat(img.GetRepoTags(), img.GetRepoDigests()) {
			s.Images = append(s.Images, snapshot.Image{
				Reference: name,
				ID:        img.GetId(),
				User:      images.UserOf(img),
				Digests:   img.GetRepoDigests(),
			})
		}
	}
	slices.SortStableFunc(s.Images, func(a, b snapshot.Image) int { return cmp.Compare(a.Reference, b.Reference) })
	s.Images = slices.CompactFunc(s.Images, func(a, b snapshot.Image) bool { return a.Reference == b.Reference })
	return s, nil
}

// observeDisk reads the state of a pod on disk: its volumes, its cgroup, the logs of containers without a record, and
// the faults that follow from them.
func (o *Observer) observeDisk(s *snapshot.Pod, redactor *redaction.Redactor, volumes volume.Context) {
	pod, desired := volumes.Pod, volumes.Desired
	states := volume.States(volumes)
	s.Volumes = map[string]snapshot.Volume{}
	for _, v := range states {
		s.Volumes[v.Name] = snapshot.Volume{Prepared: v.Prepared, Digest: v.Digest}
	}
	s.VolumesRemain = desired.FromCluster() && volume.Remain(pod)
	parent := criconfig.CgroupParent(desired.Pod, *s.Node)
	exists := o.world.Cgroups.Exists(parent) && !pod.CgroupMark().IsSet()
	s.Cgroup, s.CgroupRemains = &exists, !exists && o.world.Cgroups.Remains(parent)
	s.Ports = o.takenPorts(desired.Pod, s)
	s.LogAttempts = map[string]uint32{}
	for _, ref := range podspec.Containers(desired.Pod) {
		if n, ok := pod.Logs(desired.Pod.Namespace, desired.Pod.Name).Last(ref.Name); ok {
			s.LogAttempts[ref.Name] = n
		}
	}
	facts := proof.Facts{
		Volumes: volumes,
		States:  states,
		Node:    *s.Node,
		Runtime: s.Runtime.Name,
		Images:  s.ImagesOf(podspec.ImageNames(desired.Pod)),
	}
	s.Faults = &snapshot.Faults{Desired: desired.Digest(), Found: proof.Faults(facts, redactor)}
}

// resolveInFlight resolves creations that were in progress when podctl was killed. A container or sandbox counts as
// created if the runtime has its record, and the container has started. The others are dropped: a container that never
// started is created again, because the one it replaces may still run with its old resources.
func resolveInFlight(s *snapshot.Pod) {
	j := s.Checkpoint
	for _, c := range s.Containers {
		m, created := c.Status.GetMetadata(), c.Status.GetState() == runtimeapi.ContainerState_CONTAINER_CREATED
		if !created && j.InFlight[m.GetName()].Attempt == m.GetAttempt() {
			j.MarkCreated(m.GetName())
		}
	}
	for _, sandbox := range s.Sandboxes {
		if j.InFlight[state.ThePod].Attempt == sandbox.GetMetadata().GetAttempt() {
			j.MarkCreated(state.ThePod)
		}
	}
	j.InFlight = nil
}
