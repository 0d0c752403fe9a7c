package runtime

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/criconfig"
	"github.com/podctl/podctl/runtime/image"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/snapshot"
	"github.com/podctl/podctl/runtime/state"
	"github.com/podctl/podctl/runtime/volume"
)

// observe reads everything a decision about one pod needs. What does not depend
// on another answer is asked at the same time; the number of calls does not
// depend on other pods of the node.
func (e *Engine) observe(ctx context.Context, ref model.PodRef, desired *podspec.Desired) (*snapshot.Pod, error) {
	j, err := e.layout.Pod(ref.UID).Journal().Read()
	if err != nil {
		return nil, fmt.Errorf("observing pod %s: %w", ref, err)
	}
	return e.observeWith(ctx, ref, desired, j, nil)
}

// observeWith is observe with what podctl remembers of the pod, and with the lists of all
// pods if they have been made.
func (e *Engine) observeWith(ctx context.Context, ref model.PodRef, desired *podspec.Desired, j *state.Journal, lists *nodeLists) (s *snapshot.Pod, err error) {
	ctx, end := startSpan(ctx, "observe")
	defer func() { end(err) }()
	key, err := e.digestKey()
	if err == nil {
		err = checkRecord(ref, j)
	}
	if err != nil {
		return nil, fmt.Errorf("observing pod %s: %w", ref, err)
	}
	desired.UseKey(key)
	j.Applied.UseKey(key)
	s = &snapshot.Pod{Journal: j, TakenAt: e.now().UTC().Round(0), Pod: ref}
	known := ""
	if desired != nil && j.Left != nil {
		known = j.Left.Sandbox
	}
	var facts runtimeFacts
	group, groupCtx := errgroup.WithContext(ctx)
	group.Go(func() (err error) { facts, err = e.runtimeFacts(groupCtx); return err })
	group.Go(func() error { return e.observeRecords(groupCtx, ref, s, known, lists) })
	group.Go(func() (err error) { s.Images, err = e.observeImages(groupCtx, desired); return err })
	redactor := j.Redactor(desired)
	if err := group.Wait(); err != nil {
		return nil, fmt.Errorf("observing pod %s: %w", ref, redactor.Error(err))
	}
	settleBegun(s)
	s.Runtime = facts.Runtime
	s.Redact(redactor)
	if !j.KnowsSecrets(desired) {
		s.Withhold()
	}
	node := e.node()
	s.Node = &node
	if desired != nil {
		e.observeDisk(s, desired)
	}
	return s, nil
}

// runtimeFacts is what a runtime says of itself; it does not change during an
// invocation.
type runtimeFacts struct {
	snapshot.Runtime
	systemdCgroup bool
}

func (e *Engine) runtimeFacts(ctx context.Context) (runtimeFacts, error) {
	e.factsLock.Lock()
	defer e.factsLock.Unlock()
	if e.facts != nil {
		return *e.facts, nil
	}
	var f runtimeFacts
	var config *runtimeapi.RuntimeConfigResponse
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		reply, err := e.client.Version(ctx, &runtimeapi.VersionRequest{})
		f.Name, f.Version = reply.GetRuntimeName(), reply.GetRuntimeVersion()
		return doing("asking for the runtime's version", err)
	})
	group.Go(func() (err error) {
		f.Status, err = e.client.Status(ctx, &runtimeapi.StatusRequest{Verbose: true})
		return doing("asking for the runtime's status", err)
	})
	group.Go(func() (err error) {
		config, err = e.client.RuntimeConfig(ctx, &runtimeapi.RuntimeConfigRequest{})
		if isUnimplemented(err) {
			config = nil
			return nil
		}
		return doing("asking for the runtime's cgroup driver", err)
	})
	if err := group.Wait(); err != nil {
		return runtimeFacts{}, err
	}
	info := sync.OnceValue(func() runtimeInfo { return readInfo(f.Status.GetInfo()) })
	f.systemdCgroup = usesSystemdCgroup(config, info)
	f.Status.RuntimeHandlers = handlers(f.Status, info)
	// It is long, and more than a snapshot may tell of a machine.
	f.Status.Info = nil
	e.facts = &f
	return f, nil
}

// usesSystemdCgroup tells which cgroup driver the runtime uses. One that is too old
// to say it (containerd before 2.0) may have it in its configuration; else it is taken
// to use cgroupfs, as the kubelet takes it.
func usesSystemdCgroup(config *runtimeapi.RuntimeConfigResponse, info func() runtimeInfo) bool {
	if config != nil {
		return config.GetLinux().GetCgroupDriver() == runtimeapi.CgroupDriver_SYSTEMD
	}
	return info().systemdCgroup()
}

// handlers are the runtime's handlers. One that is too old to say them (containerd before
// 1.7) has them in its configuration; of another that does not, none are known.
func handlers(status *runtimeapi.StatusResponse, info func() runtimeInfo) []*runtimeapi.RuntimeHandler {
	if listed := status.GetRuntimeHandlers(); len(listed) > 0 {
		return listed
	}
	configured := info().config.Containerd.Runtimes
	if len(configured) == 0 {
		return nil
	}
	found := []*runtimeapi.RuntimeHandler{{}}
	for _, name := range slices.Sorted(maps.Keys(configured)) {
		found = append(found, &runtimeapi.RuntimeHandler{Name: name})
	}
	return found
}

// listContainers lists the containers of a pod, in whatever state.
func (e *Engine) listContainers(ctx context.Context, ref model.PodRef) ([]*runtimeapi.Container, error) {
	reply, err := e.client.ListContainers(ctx, &runtimeapi.ListContainersRequest{
		Filter: &runtimeapi.ContainerFilter{LabelSelector: uidSelector(ref)},
	})
	if err == nil {
		err = checkAllLabels(e, ref, reply.GetContainers())
	}
	return reply.GetContainers(), doing("listing its containers", err)
}

// doing says what was done when an error came.
func doing(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}

func uidSelector(ref model.PodRef) map[string]string {
	return map[string]string{criconfig.LabelPodUID: string(ref.UID)}
}

// ignoreNotFound takes what vanished between a list and a status as gone.
func ignoreNotFound(err error) error {
	if isNotFound(err) {
		return nil
	}
	return err
}

// observeImages asks for every image the pod names, each once.
func (e *Engine) observeImages(ctx context.Context, desired *podspec.Desired) ([]snapshot.Image, error) {
	if desired == nil {
		return nil, nil
	}
	names := podspec.ImageNames(desired.Pod)
	found := make([]snapshot.Image, len(names))
	group, ctx := errgroup.WithContext(ctx)
	for i, name := range names {
		group.Go(func() error {
			info, present, err := image.Status(ctx, e.client.Images, name)
			if present {
				found[i] = snapshot.Image{Reference: info.Reference, ID: info.ID, User: info.User}
			}
			if bad := (*image.Error)(nil); errors.As(err, &bad) && bad.Reason == image.InvalidImageName {
				// No runtime has it. It is told when it shall be pulled, and holds up nobody else.
				return nil
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, doing("asking for its images", err)
	}
	return slices.DeleteFunc(found, func(i snapshot.Image) bool { return i.ID == "" }), nil
}

// Snapshot observes a pod, and all images of the runtime beside those the pod
// names, so that a plan for an edited manifest can be made of it.
func (e *Engine) Snapshot(ctx context.Context, desired *podspec.Desired) (*snapshot.Pod, error) {
	s, err := e.observe(ctx, model.RefOf(desired.Pod), desired)
	if err != nil {
		return nil, err
	}
	reply, err := e.client.Images.ListImages(ctx, &runtimeapi.ListImagesRequest{})
	if err != nil {
		return nil, fmt.Errorf("listing images: %w", err)
	}
	for _, img := range reply.GetImages() {
		for _, name := range slices.Concat(img.GetRepoTags(), img.GetRepoDigests()) {
			s.Images = append(s.Images, snapshot.Image{Reference: name, ID: img.GetId(), User: image.UserOf(img)})
		}
	}
	slices.SortStableFunc(s.Images, func(a, b snapshot.Image) int { return cmp.Compare(a.Reference, b.Reference) })
	s.Images = slices.CompactFunc(s.Images, func(a, b snapshot.Image) bool { return a.Reference == b.Reference })
	return s, nil
}

// observeDisk looks at what lies on disk for a pod: its volumes, its cgroup and
// the logs of containers the runtime has lost.
func (e *Engine) observeDisk(s *snapshot.Pod, desired *podspec.Desired) {
	pod := e.layout.Pod(desired.Pod.UID)
	s.Volumes = map[string]snapshot.Volume{}
	for _, vol := range podspec.UsedVolumes(desired.Pod) {
		s.Volumes[vol.Name] = e.observeVolume(desired, vol.Name)
	}
	exists := e.cgroups.Exists(criconfig.CgroupParent(desired.Pod, e.node())) && !pod.CgroupMark().IsSet()
	s.Cgroup = &exists
	s.Ports = e.takenPorts(desired.Pod, s)
	s.LogAttempts = map[string]uint32{}
	for _, ref := range podspec.Containers(desired.Pod) {
		if n, ok := pod.Logs(desired.Pod.Namespace, desired.Pod.Name).Last(ref.Name); ok {
			s.LogAttempts[ref.Name] = n
		}
	}
}

// observeVolume looks at what lies on disk for one volume. A volume that cannot
// be read counts as not prepared: preparing it says why.
func (e *Engine) observeVolume(desired *podspec.Desired, name string) snapshot.Volume {
	digest, prepared, err := volume.OnDisk(e.volumeContext(desired), name)
	if err != nil {
		return snapshot.Volume{}
	}
	return snapshot.Volume{Prepared: prepared, Digest: digest}
}
