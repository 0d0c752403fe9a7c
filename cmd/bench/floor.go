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
	"google.golang.org/protobuf/proto"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
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
	if err := n.put(name, s, name)(ctx); err != nil {
		return nil, err
	}
	_, rendered, err := n.podctl.run(ctx, "render", "--cri", "-o", "json", n.manifest(name))
	if err != nil {
		return nil, err
	}
	request := &runtimeapi.ImageStatusRequest{Image: &runtimeapi.ImageSpec{Image: demoImage}}
	image, err := n.images.ImageStatus(ctx, request)
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
	f := &floor{node: n, sandbox: &runtimeapi.PodSandboxConfig{}, inits: s.inits}
	f.ids = make([]string, len(messages.Containers))
	err = protojson.Unmarshal(messages.Sandbox, f.sandbox)
	for _, one := range messages.Containers {
		config := &runtimeapi.ContainerConfig{}
		err = errors.Join(err, protojson.Unmarshal(one, config))
		f.containers = append(f.containers, config)
	}
	return f, err
}

// prepare creates the directories and files in the messages.
func (f *floor) prepare(context.Context) (err error) {
	for _, c := range f.containers {
		logs := filepath.Join(f.sandbox.GetLogDirectory(), filepath.Dir(c.GetLogPath()))
		err = errors.Join(err, os.MkdirAll(logs, 0o755))
		for _, m := range c.GetMounts() {
			path := m.GetHostPath()
			err = errors.Join(err, os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, nil, 0o600))
		}
	}
	return err
}

// create creates the pod with its containers in parallel. It notices the end of an init container within a millisecond
// after the runtime shows it.
func (f *floor) create(ctx context.Context) error {
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
	for i := f.inits; i < len(f.containers); i++ {
		group.Go(func() error { return f.start(ctx, i) })
	}
	return group.Wait()
}

func (f *floor) start(ctx context.Context, i int) error {
	created, err := f.cri.CreateContainer(ctx, &runtimeapi.CreateContainerRequest{
		PodSandboxId: f.sandboxID, Config: f.containers[i], SandboxConfig: f.sandbox,
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

// stop returns the call that stops a container.
func (f *floor) stop(i int) step {
	return call(f.cri.StopContainer, &runtimeapi.StopContainerRequest{ContainerId: f.ids[i], Timeout: graceSeconds})
}

// replace stops the last container and starts its successor.
func (f *floor) replace(ctx context.Context) error {
	last := len(f.containers) - 1
	f.containers[last].Metadata.Attempt++
	return inTurn(f.stop(last), func(ctx context.Context) error { return f.start(ctx, last) })(ctx)
}

// remove makes only the calls that the deletion of a pod of one container requires.
func (f *floor) remove(ctx context.Context) error {
	return inTurn(
		f.stop(0),
		f.stopSandbox(f.sandboxID),
		call(f.cri.RemoveContainer, &runtimeapi.RemoveContainerRequest{ContainerId: f.ids[0]}),
		f.removeSandbox(f.sandboxID),
	)(ctx)
}

// discard removes the pod quickly, with the cgroup that the runtime created for it, so that each run begins in the same
// state. The pod may be gone.
func (f *floor) discard(ctx context.Context) error {
	return errors.Join(
		f.stopSandbox(f.sandboxID)(ctx),
		f.removeSandbox(f.sandboxID)(ctx),
		removeCgroup(f.sandbox.GetLinux().GetCgroupParent()),
	)
}

// crictl returns the contender that creates the pod like a user of crictl: one call after the other, with existing
// files.
func (f *floor) crictl(p program) contender {
	return contender{
		name: "crictl by hand", before: f.prepare, after: f.discard,
		run: func(ctx context.Context) (sum sample, err error) {
			// crictl adds its time to the sum, and returns the id that it prints.
			crictl := func(args ...string) string {
				if err != nil {
					return ""
				}
				s, id, failed := p.run(ctx, append([]string{"--runtime-endpoint", f.endpoint()}, args...)...)
				sum.wall, sum.cpu, err = sum.wall+s.wall, sum.cpu+s.cpu, failed
				return strings.TrimSpace(id)
			}
			sandbox, err := f.writeMessage("sandbox.json", f.sandbox)
			f.sandboxID = crictl("runp", sandbox)
			for _, c := range f.containers {
				file, failed := f.writeMessage("container.json", c)
				err = errors.Join(err, failed)
				crictl("start", crictl("create", "--no-pull", f.sandboxID, file, sandbox))
			}
			return sum, err
		},
	}
}

func (f *floor) writeMessage(name string, message proto.Message) (string, error) {
	text, err := json.Marshal(message)
	if err != nil {
		return "", err
	}
	return f.path(name), os.WriteFile(f.path(name), text, 0o600)
}
