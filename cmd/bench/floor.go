package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/protobuf/encoding/protojson"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// How many containers are started at a time.
const (
	oneByOne   = 1
	sideBySide = -1
)

// demoImage is the image of all containers.
const demoImage = "registry.local/podctl/demo:1"

// floor makes a pod by bare calls over one connection, one after the other: the floor
// under any tool. The messages are those that podctl sends.
type floor struct {
	n *node
	// sandbox and containers are the messages; the first containers are init containers.
	sandbox    *runtimeapi.PodSandboxConfig
	inits      []*runtimeapi.ContainerConfig
	containers []*runtimeapi.ContainerConfig

	sandboxID string
	mu        sync.Mutex
	// ids are the containers that run, by their names.
	ids map[string]string
}

// floorOf takes the messages of a manifest from podctl itself.
func (n *node) floorOf(ctx context.Context, name string, s shape) (*floor, error) {
	path, err := n.write(name+".yaml", s.manifest(name))
	if err != nil {
		return nil, err
	}
	rendered, err := execute(ctx, n.o.podctl, n.args("render", "--cri", "-o", "json", path)...)
	if err != nil {
		return nil, err
	}
	image, err := n.img.ImageStatus(ctx, &runtimeapi.ImageStatusRequest{Image: &runtimeapi.ImageSpec{Image: demoImage}})
	if err != nil {
		return nil, err
	}
	text := strings.NewReplacer("$IMAGE_ID", image.GetImage().GetId(), "$TERMINATION_LOG", "0").Replace(rendered.stdout)
	var messages struct {
		Sandbox    json.RawMessage   `json:"sandbox"`
		Containers []json.RawMessage `json:"containers"`
	}
	if err = json.Unmarshal([]byte(text), &messages); err != nil {
		return nil, err
	}
	f := &floor{n: n, sandbox: &runtimeapi.PodSandboxConfig{}, ids: map[string]string{}}
	err = protojson.Unmarshal(messages.Sandbox, f.sandbox)
	for _, one := range messages.Containers {
		config := &runtimeapi.ContainerConfig{}
		err = errors.Join(err, protojson.Unmarshal(one, config))
		f.containers = append(f.containers, config)
	}
	f.inits, f.containers = f.containers[:s.inits], f.containers[s.inits:]
	return f, err
}

// prepare makes the directories and files that the messages name.
func (f *floor) prepare(context.Context) error {
	for _, c := range slices.Concat(f.inits, f.containers) {
		err := os.MkdirAll(filepath.Join(f.sandbox.GetLogDirectory(), filepath.Dir(c.GetLogPath())), 0o755)
		for _, m := range c.GetMounts() {
			err = errors.Join(err, os.MkdirAll(filepath.Dir(m.GetHostPath()), 0o755), os.WriteFile(m.GetHostPath(), nil, 0o600))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// run makes the pod. The end of an init container is seen as early as the runtime
// shows it, give or take a millisecond.
func (f *floor) run(ctx context.Context, atATime int) error {
	if err := f.runSandbox(ctx); err != nil {
		return err
	}
	for _, c := range f.inits {
		if err := errors.Join(f.start(ctx, c), f.awaitExit(ctx, c)); err != nil {
			return err
		}
	}
	return f.startAll(ctx, atATime)
}

func (f *floor) runSandbox(ctx context.Context) error {
	reply, err := f.n.cri.RunPodSandbox(ctx, &runtimeapi.RunPodSandboxRequest{Config: f.sandbox})
	if err != nil {
		return err
	}
	f.sandboxID = reply.GetPodSandboxId()
	_, err = f.n.cri.PodSandboxStatus(ctx, &runtimeapi.PodSandboxStatusRequest{PodSandboxId: f.sandboxID})
	return err
}

func (f *floor) startAll(ctx context.Context, atATime int) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(atATime)
	for _, c := range f.containers {
		group.Go(func() error { return f.start(ctx, c) })
	}
	return group.Wait()
}

func (f *floor) start(ctx context.Context, c *runtimeapi.ContainerConfig) error {
	created, err := f.n.cri.CreateContainer(ctx, &runtimeapi.CreateContainerRequest{PodSandboxId: f.sandboxID, Config: c, SandboxConfig: f.sandbox})
	if err != nil {
		return err
	}
	f.mu.Lock()
	f.ids[c.GetMetadata().GetName()] = created.GetContainerId()
	f.mu.Unlock()
	_, err = f.n.cri.StartContainer(ctx, &runtimeapi.StartContainerRequest{ContainerId: created.GetContainerId()})
	return err
}

func (f *floor) awaitExit(ctx context.Context, c *runtimeapi.ContainerConfig) error {
	for {
		reply, err := f.n.cri.ContainerStatus(ctx, &runtimeapi.ContainerStatusRequest{ContainerId: f.ids[c.GetMetadata().GetName()]})
		if err != nil || reply.GetStatus().GetState() == runtimeapi.ContainerState_CONTAINER_EXITED {
			return err
		}
		time.Sleep(time.Millisecond)
	}
}

// replacing is a contender that stops the last container and starts its successor. The record of the first
// is removed after each run.
func (f *floor) replacing() contender {
	c, old := f.containers[len(f.containers)-1], ""
	return contender{
		name: floorName,
		run: func(ctx context.Context) (sample, error) {
			return clocked(func() error {
				old = f.ids[c.GetMetadata().GetName()]
				c.Metadata.Attempt++
				if err := f.stop(ctx, old); err != nil {
					return err
				}
				return f.start(ctx, c)
			})
		},
		after: func(ctx context.Context) error { return f.removeContainer(ctx, old) },
	}
}

func (f *floor) stop(ctx context.Context, id string) error {
	_, err := f.n.cri.StopContainer(ctx, &runtimeapi.StopContainerRequest{ContainerId: id, Timeout: graceSeconds})
	return err
}

func (f *floor) removeContainer(ctx context.Context, id string) error {
	_, err := f.n.cri.RemoveContainer(ctx, &runtimeapi.RemoveContainerRequest{ContainerId: id})
	return err
}

// remove makes the calls that a deletion needs, and no more.
func (f *floor) remove(ctx context.Context) error {
	for _, id := range f.ids {
		if err := f.stop(ctx, id); err != nil {
			return err
		}
	}
	if _, err := f.n.cri.StopPodSandbox(ctx, &runtimeapi.StopPodSandboxRequest{PodSandboxId: f.sandboxID}); err != nil {
		return err
	}
	for _, id := range f.ids {
		if err := f.removeContainer(ctx, id); err != nil {
			return err
		}
	}
	clear(f.ids)
	_, err := f.n.cri.RemovePodSandbox(ctx, &runtimeapi.RemovePodSandboxRequest{PodSandboxId: f.sandboxID})
	return err
}

// discard removes the pod as fast as can be, and the cgroup that the runtime made for
// it: the next run finds what this one found.
func (f *floor) discard(ctx context.Context) error {
	err := f.n.removeSandbox(ctx, f.sandboxID)
	clear(f.ids)
	return errors.Join(err, f.clean(ctx))
}

func (f *floor) clean(context.Context) error {
	return removeCgroup(f.sandbox.GetLinux().GetCgroupParent())
}

func (n *node) removeSandbox(ctx context.Context, id string) error {
	_, stopErr := n.cri.StopPodSandbox(ctx, &runtimeapi.StopPodSandboxRequest{PodSandboxId: id})
	_, err := n.cri.RemovePodSandbox(ctx, &runtimeapi.RemovePodSandboxRequest{PodSandboxId: id})
	return errors.Join(stopErr, err)
}

// contender times the making of the pod.
func (f *floor) contender(name string, atATime int) contender {
	return contender{name: name, before: f.prepare, after: f.discard, run: func(ctx context.Context) (sample, error) {
		return clocked(func() error { return f.run(ctx, atATime) })
	}}
}

// shape is a pod of demo containers.
type shape struct {
	inits, containers int
	// sleep is how long each init container takes; they end at once if it is empty.
	sleep string
	// network is the machine's own when it is "host".
	network string
	images  []string
	// finished makes its containers end at once.
	finished bool
	// mark is in the environment of the last container: another mark replaces it.
	mark string
	// probed asks its only container three times in ten seconds.
	probed bool
}

// regularPrefix is what the names of the containers begin with that are no init containers.
const regularPrefix = "c"

// graceSeconds is the grace period of all pods; the demo program obeys SIGTERM at once.
const graceSeconds = 5

func (s shape) manifest(name string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "apiVersion: v1\nkind: Pod\nmetadata: {name: %s}\nspec:\n  terminationGracePeriodSeconds: %d\n", name, graceSeconds)
	if s.network == "host" {
		b.WriteString("  hostNetwork: true\n")
	}
	args, probes := "[sleep]", ""
	if s.finished {
		b.WriteString("  restartPolicy: Never\n")
		args = `[exit, "0"]`
	}
	if s.probed {
		args = `[serve, --http, ":8080"]`
		probes = ", livenessProbe: {periodSeconds: 10, httpGet: {path: /healthz, port: 8080}}, readinessProbe: {periodSeconds: 5, httpGet: {path: /healthz, port: 8080}}"
	}
	if s.inits > 0 {
		b.WriteString("  initContainers:\n")
	}
	after := ""
	if s.sleep != "" {
		after = "-after, " + s.sleep + ", "
	}
	for i := range s.inits {
		fmt.Fprintf(&b, "  - {name: i%d, image: %q, args: [exit, %s\"0\"]}\n", i, demoImage, after)
	}
	b.WriteString("  containers:\n")
	for i := range s.containers {
		image, env := demoImage, ""
		if i < len(s.images) {
			image = s.images[i]
		}
		if i == s.containers-1 && s.mark != "" {
			env = fmt.Sprintf(", env: [{name: MARK, value: %q}]", s.mark)
		}
		fmt.Fprintf(&b, "  - {name: %s%d, image: %q, args: %s%s%s}\n", regularPrefix, i, image, args, env, probes)
	}
	return b.String()
}
