package main

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/protobuf/encoding/protojson"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// How many containers are started in parallel.
const (
	oneByOne   = 1
	sideBySide = -1
)

// floor creates a pod with bare calls over one connection, which is the minimum time for any tool. The messages are
// those of podctl.
type floor struct {
	*node

	// sandbox and containers are the messages. The first inits containers are init containers.
	sandbox    *runtimeapi.PodSandboxConfig
	containers []*runtimeapi.ContainerConfig
	inits      int

	sandboxID string
	// ids lists the running containers, in the order of containers.
	ids []string
}

// floorOf gets the messages for a manifest from podctl.
func (n *node) floorOf(ctx context.Context, name string, s shape) (*floor, error) {
	path, err := n.write(name+".yaml", s.manifest(name))
	if err != nil {
		return nil, err
	}
	_, rendered, err := timed(ctx, n.o.podctl, n.args("render", "--cri", "-o", "json", path)...)
	if err != nil {
		return nil, err
	}
	images := runtimeapi.NewImageServiceClient(n.conn)
	image, err := images.ImageStatus(ctx, &runtimeapi.ImageStatusRequest{
		Image: &runtimeapi.ImageSpec{Image: demoImage},
	})
	if err != nil {
		return nil, err
	}
	text := strings.NewReplacer("$IMAGE_ID", image.GetImage().GetId(), "$TERMINATION_LOG", "0").Replace(rendered)
	var messages struct {
		Sandbox    json.RawMessage   `json:"sandbox"`
		Containers []json.RawMessage `json:"containers"`
	}
	if err = json.Unmarshal([]byte(text), &messages); err != nil {
		return nil, err
	}
	f := &floor{
		node:    n,
		sandbox: &runtimeapi.PodSandboxConfig{},
		inits:   s.inits,
		ids:     make([]string, len(messages.Containers)),
	}
	err = protojson.Unmarshal(messages.Sandbox, f.sandbox)
	for _, one := range messages.Containers {
		config := &runtimeapi.ContainerConfig{}
		err = errors.Join(err, protojson.Unmarshal(one, config))
		f.containers = append(f.containers, config)
	}
	return f, err
}

// prepare creates the directories and files in the messages.
func (f *floor) prepare(context.Context) error {
	for _, c := range f.containers {
		err := os.MkdirAll(filepath.Join(f.sandbox.GetLogDirectory(), filepath.Dir(c.GetLogPath())), 0o755)
		for _, m := range c.GetMounts() {
			err = errors.Join(
				err,
				os.MkdirAll(filepath.Dir(m.GetHostPath()), 0o755),
				os.WriteFile(m.GetHostPath(), nil, 0o600),
			)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// run creates the pod. It notices the end of an init container within a millisecond after the runtime shows it.
func (f *floor) run(ctx context.Context, atATime int) error {
	reply, err := f.cri.RunPodSandbox(ctx, &runtimeapi.RunPodSandboxRequest{Config: f.sandbox})
	if err != nil {
		return err
	}
	f.sandboxID = reply.GetPodSandboxId()
	request := &runtimeapi.PodSandboxStatusRequest{PodSandboxId: f.sandboxID}
	if _, err = f.cri.PodSandboxStatus(ctx, request); err != nil {
		return err
	}
	for i := range f.inits {
		if err = errors.Join(f.start(ctx, i), f.awaitExit(ctx, i)); err != nil {
			return err
		}
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(atATime)
	for i := f.inits; i < len(f.containers); i++ {
		group.Go(func() error { return f.start(ctx, i) })
	}
	return group.Wait()
}

func (f *floor) start(ctx context.Context, i int) error {
	created, err := f.cri.CreateContainer(ctx, &runtimeapi.CreateContainerRequest{
		PodSandboxId:  f.sandboxID,
		Config:        f.containers[i],
		SandboxConfig: f.sandbox,
	})
	if err != nil {
		return err
	}
	f.ids[i] = created.GetContainerId()
	_, err = f.cri.StartContainer(ctx, &runtimeapi.StartContainerRequest{ContainerId: f.ids[i]})
	return err
}

func (f *floor) awaitExit(ctx context.Context, i int) error {
	for {
		reply, err := f.cri.ContainerStatus(ctx, &runtimeapi.ContainerStatusRequest{ContainerId: f.ids[i]})
		if err != nil || reply.GetStatus().GetState() == runtimeapi.ContainerState_CONTAINER_EXITED {
			return err
		}
		time.Sleep(time.Millisecond)
	}
}

func (f *floor) stop(ctx context.Context, id string) error {
	_, err := f.cri.StopContainer(ctx, &runtimeapi.StopContainerRequest{ContainerId: id, Timeout: graceSeconds})
	return err
}

func (f *floor) removeContainer(ctx context.Context, id string) error {
	_, err := f.cri.RemoveContainer(ctx, &runtimeapi.RemoveContainerRequest{ContainerId: id})
	return err
}

// remove makes only the calls that a deletion requires.
func (f *floor) remove(ctx context.Context) error {
	for _, id := range f.ids {
		if err := f.stop(ctx, id); err != nil {
			return err
		}
	}
	if _, err := f.cri.StopPodSandbox(ctx, &runtimeapi.StopPodSandboxRequest{PodSandboxId: f.sandboxID}); err != nil {
		return err
	}
	for _, id := range f.ids {
		if err := f.removeContainer(ctx, id); err != nil {
			return err
		}
	}
	_, err := f.cri.RemovePodSandbox(ctx, &runtimeapi.RemovePodSandboxRequest{PodSandboxId: f.sandboxID})
	return err
}

// discard removes the pod quickly, with the cgroup that the runtime created for it, so that each run begins in the same
// state.
func (f *floor) discard(ctx context.Context) error {
	return errors.Join(f.removeSandbox(ctx, f.sandboxID), f.clean())
}

func (f *floor) clean() error { return removeCgroup(f.sandbox.GetLinux().GetCgroupParent()) }

func (n *node) removeSandbox(ctx context.Context, id string) error {
	_, stopErr := n.cri.StopPodSandbox(ctx, &runtimeapi.StopPodSandboxRequest{PodSandboxId: id})
	_, err := n.cri.RemovePodSandbox(ctx, &runtimeapi.RemovePodSandboxRequest{PodSandboxId: id})
	return errors.Join(stopErr, err)
}

// creating measures the creation of the pod.
func (f *floor) creating(name string, atATime int) contender {
	run := func(ctx context.Context) error { return f.run(ctx, atATime) }
	return contender{name: name, before: f.prepare, after: f.discard, run: clocked(run)}
}

// replacing measures the stop of the last container and the start of its successor.
func (f *floor) replacing() contender {
	last, old := len(f.containers)-1, ""
	return contender{
		name: floorName,
		run: clocked(func(ctx context.Context) error {
			old = f.ids[last]
			f.containers[last].Metadata.Attempt++
			if err := f.stop(ctx, old); err != nil {
				return err
			}
			return f.start(ctx, last)
		}),
		after: func(ctx context.Context) error { return f.removeContainer(ctx, old) },
	}
}

// removing measures the deletion of the pod.
func (f *floor) removing() contender {
	return contender{
		name: floorName, after: func(context.Context) error { return f.clean() },
		before: func(ctx context.Context) error {
			if err := f.prepare(ctx); err != nil {
				return err
			}
			return f.run(ctx, oneByOne)
		},
		run: clocked(f.remove),
	}
}
