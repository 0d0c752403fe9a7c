package observe

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/cgroup"
	"github.com/podctl/podctl/runtime/cri"
	"github.com/podctl/podctl/runtime/criconfig"
	"github.com/podctl/podctl/runtime/images"
	"github.com/podctl/podctl/runtime/logfile"
	"github.com/podctl/podctl/runtime/machine"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/objects"
	"github.com/podctl/podctl/runtime/plan"
	"github.com/podctl/podctl/runtime/snapshot"
	"github.com/podctl/podctl/runtime/state"
	"github.com/podctl/podctl/runtime/volume"
)

// World is what podctl works on: a runtime, its own files, the pods' cgroups and the clock.
type World struct {
	Client  *cri.Client
	Layout  state.Layout
	Cgroups cgroup.Groups
	Now     func() time.Time
	// Objects are the ConfigMaps and Secrets that were applied; nil for none.
	Objects *objects.Store
	// Logs are the limits of the logs of containers.
	Logs logfile.Limits
	// Pulls is how many images are pulled at the same time; zero means any number.
	Pulls int
	// Exits are processes that have ended before the runtime's records show it; nil for none.
	Exits *Exits
	// Reserved are ports of the node that no pod can have.
	Reserved []machine.Reserved
}

// Observer reads what a runtime and podctl's own files say of pods. It changes nothing.
type Observer struct {
	world   World
	host    *Host
	digests *Digests
	// adopts reports whether pods of another runtime may move to this one.
	adopts bool
	// taken is what pods take of the node; nil for one that takes nothing.
	taken *state.Summaries[*model.Admitted]
}

// New makes an Observer.
func New(w World, host *Host, digests *Digests) *Observer {
	taken := state.NewSummaries(w.Layout, func(c *state.Checkpoint) *model.Admitted { return snapshot.TakenBy(&c.Memory) })
	return &Observer{world: w, host: host, digests: digests, taken: taken}
}

// Observe reads everything a decision about one pod needs. What does not depend
// on another answer is asked at the same time; the number of calls does not
// depend on other pods of the node.
func (o *Observer) Observe(ctx context.Context, ref model.PodRef, desired *podspec.Desired) (*snapshot.Pod, error) {
	j, err := o.world.Layout.Pod(ref.UID).Checkpoint().Read()
	if err != nil {
		return nil, fmt.Errorf("observing pod %s: %w", ref, err)
	}
	return o.observeWith(ctx, ref, desired, j, nil)
}

// observeWith is observe with what podctl remembers of the pod, and with the lists of all
// pods if they have been made.
func (o *Observer) observeWith(ctx context.Context, ref model.PodRef, desired *podspec.Desired, j *state.Checkpoint, lists *nodeLists) (s *snapshot.Pod, err error) {
	ctx, end := cri.StartSpan(ctx, "observe")
	defer func() { end(err) }()
	key, err := o.digests.Key()
	if err == nil {
		err = checkRecord(ref, j)
	}
	if err != nil {
		return nil, fmt.Errorf("observing pod %s: %w", ref, err)
	}
	desired.UseKey(key)
	j.Applied.UseKey(key)
	s = &snapshot.Pod{Checkpoint: j, TakenAt: o.world.Now().UTC().Round(0), Pod: ref}
	known := ""
	if desired != nil && j.LastRun != nil {
		known = j.LastRun.Sandbox
	}
	hooks := o.world.Layout.Pod(ref.UID).Hooks().Running()
	var facts RuntimeFacts
	group, groupCtx := errgroup.WithContext(ctx)
	group.Go(func() (err error) { facts, err = o.host.RuntimeFacts(groupCtx); return err })
	group.Go(func() error { return o.observeRecords(groupCtx, ref, s, known, lists) })
	group.Go(func() (err error) { s.Images, err = o.observeImages(groupCtx, desired); return err })
	redactor := j.Redactor(desired)
	if err := group.Wait(); err != nil {
		return nil, fmt.Errorf("observing pod %s: %w", ref, redactor.Error(err))
	}
	settleInFlight(s)
	o.markStarting(s, hooks)
	s.Runtime = facts.Runtime
	s.Redact(redactor)
	if !j.KnowsSecrets(desired) {
		s.Withhold()
	}
	node := o.host.Node()
	s.Node = &node
	if desired != nil {
		volumes := volume.Context{Pod: o.world.Layout.Pod(desired.Pod.UID), Desired: desired, Allocatable: node.Allocatable}
		found := volume.Look(volumes)
		o.observeDisk(s, desired, found)
		s.Faults = examine(s, volumes, found, redactor)
	}
	return s, nil
}

// markStarting notes which containers run their postStart hook. A mark counts whether it was there before
// the records were read or after: a hook may begin or end in between, and a container that failed its hook
// must not be shown as started.
func (o *Observer) markStarting(s *snapshot.Pod, before map[string]bool) {
	after := o.world.Layout.Pod(s.Pod.UID).Hooks().Running()
	for i := range s.Containers {
		id := s.Containers[i].Status.GetId()
		s.Containers[i].Starting = before[id] || after[id]
	}
}

// observeImages asks for every image the pod names, each once.
func (o *Observer) observeImages(ctx context.Context, desired *podspec.Desired) ([]snapshot.Image, error) {
	if desired == nil {
		return nil, nil
	}
	names := podspec.ImageNames(desired.Pod)
	found := make([]snapshot.Image, len(names))
	group, ctx := errgroup.WithContext(ctx)
	for i, name := range names {
		group.Go(func() error {
			info, present, err := images.Status(ctx, o.world.Client.Images, name)
			if present {
				found[i] = snapshot.Image{Reference: info.Reference, ID: info.ID, User: info.User, Digests: info.RepoDigests}
			}
			if bad := (*images.Error)(nil); errors.As(err, &bad) && bad.Invalid {
				// No runtime has it. It is told when it shall be pulled, and holds up nobody else.
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

// Snapshot observes a pod, and all images of the runtime beside those the pod
// names, so that a plan for an edited manifest can be made of it.
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
			s.Images = append(s.Images, snapshot.Image{Reference: name, ID: img.GetId(), User: images.UserOf(img), Digests: img.GetRepoDigests()})
		}
	}
	slices.SortStableFunc(s.Images, func(a, b snapshot.Image) int { return cmp.Compare(a.Reference, b.Reference) })
	s.Images = slices.CompactFunc(s.Images, func(a, b snapshot.Image) bool { return a.Reference == b.Reference })
	return s, nil
}

// observeDisk looks at what lies on disk for a pod: its volumes, its cgroup and
// the logs of containers the runtime has lost.
func (o *Observer) observeDisk(s *snapshot.Pod, desired *podspec.Desired, volumes []volume.State) {
	pod := o.world.Layout.Pod(desired.Pod.UID)
	s.Volumes = map[string]snapshot.Volume{}
	for _, v := range volumes {
		s.Volumes[v.Name] = snapshot.Volume{Prepared: v.Prepared, Digest: v.Digest}
	}
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
}

// settleInFlight takes what was about to be made when podctl was killed for made if there is a record that it was
// started, and forgets the rest. What was only created is made again: the container that it was to replace may run on,
// with the resources that it had.
func settleInFlight(s *snapshot.Pod) {
	j := s.Checkpoint
	for _, c := range s.Containers {
		m, created := c.Status.GetMetadata(), c.Status.GetState() == runtimeapi.ContainerState_CONTAINER_CREATED
		if !created && j.InFlight[m.GetName()].Attempt == m.GetAttempt() {
			j.Settle(m.GetName())
		}
	}
	for _, sandbox := range s.Sandboxes {
		if j.InFlight[state.ThePod].Attempt == sandbox.GetMetadata().GetAttempt() {
			j.Settle(state.ThePod)
		}
	}
	j.InFlight = nil
}

// Input observes a pod and returns the input of a plan, and the snapshot that it is made of. A
// pod that was applied to another runtime is an error. The pod takes what is stored by now of the
// objects that its manifest does not bring. Of one with an edit that is not admitted it is the input
// of the pod as it was applied.
func (o *Observer) Input(ctx context.Context, ref model.PodRef, desired *podspec.Desired, opts plan.Options) (*plan.Input, *snapshot.Pod, error) {
	desired, err := o.withStored(desired)
	if err != nil {
		return nil, nil, err
	}
	s, err := o.Observe(ctx, ref, desired)
	if err != nil {
		return nil, nil, err
	}
	if err = o.checkEndpoint(ctx, ref, s); err != nil {
		return nil, nil, err
	}
	in := s.Input(ref, desired, opts)
	if !in.Admits() {
		return in, s, nil
	}
	if in.Observed.Others, err = o.Others(ref); err != nil {
		return nil, nil, err
	}
	hold := in.Refused()
	if hold == nil {
		return in, s, nil
	}
	before := *s.Checkpoint.Applied
	opts.Admission, opts.Refused = nil, hold
	return o.Input(ctx, ref, &before, opts)
}
