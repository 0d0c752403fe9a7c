package runtimetest

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

type container struct {
	sandboxID string
	name      string
	config    *runtimeapi.ContainerConfig
	status    *runtimeapi.ContainerStatus
	// exitAt is when it exits by itself; zero means never.
	exitAt   int64
	exitCode int32
	// graceful makes it exit with 0 when it is stopped.
	graceful bool
	// written is the size of its writable layer in bytes.
	written uint64
	// memory is the memory that it uses in bytes.
	memory uint64
}

// CreateContainer creates a container that does not run yet.
func (s *runtimeService) CreateContainer(
	_ context.Context, r *runtimeapi.CreateContainerRequest,
) (*runtimeapi.CreateContainerResponse, error) {
	config, sandbox := r.GetConfig(), s.sandboxes[r.GetPodSandboxId()]
	meta := config.GetMetadata()
	s.log("CreateContainer %s %d", meta.GetName(), meta.GetAttempt())
	if sandbox == nil {
		return nil, notFound("sandbox", r.GetPodSandboxId())
	}
	pod := sandbox.config.GetMetadata()
	name := fmt.Sprintf("%s_%s_%s_%s_%d",
		meta.GetName(), pod.GetName(), pod.GetNamespace(), pod.GetUid(), meta.GetAttempt())
	for id, other := range s.containers {
		if other.name == name {
			return nil, reserved("container", name, id)
		}
	}
	if sandbox.status.GetState() != runtimeapi.PodSandboxState_SANDBOX_READY {
		return nil, status.Errorf(codes.Unknown, "sandbox container %q is not running", r.GetPodSandboxId())
	}
	img := s.find(config.GetImage().GetImage())
	if img == nil {
		return nil, status.Errorf(codes.NotFound, "failed to resolve image %q", config.GetImage().GetImage())
	}
	s.created.Containers = append(s.created.Containers, config)
	id := s.newID()
	s.containers[id] = &container{
		sandboxID: r.GetPodSandboxId(), name: name, config: config,
		status: &runtimeapi.ContainerStatus{
			Id:          id,
			Metadata:    meta,
			State:       runtimeapi.ContainerState_CONTAINER_CREATED,
			CreatedAt:   s.now() + int64(s.serial),
			Image:       config.GetImage(),
			ImageRef:    img.GetId(),
			ImageId:     img.GetId(),
			Labels:      config.GetLabels(),
			Annotations: config.GetAnnotations(),
			LogPath:     filepath.Join(sandbox.config.GetLogDirectory(), config.GetLogPath()),
			Resources:   &runtimeapi.ContainerResources{Linux: config.GetLinux().GetResources()},
			Mounts:      config.GetMounts(),
		},
	}
	return &runtimeapi.CreateContainerResponse{ContainerId: id}, nil
}

// StartContainer starts a container, which then follows the Behaviour for its name.
func (s *runtimeService) StartContainer(
	_ context.Context, r *runtimeapi.StartContainerRequest,
) (*runtimeapi.StartContainerResponse, error) {
	c := s.containers[r.GetContainerId()]
	if c == nil {
		return nil, notFound("container", r.GetContainerId())
	}
	s.log("StartContainer %s %d", c.status.GetMetadata().GetName(), c.status.GetMetadata().GetAttempt())
	if c.status.GetState() != runtimeapi.ContainerState_CONTAINER_CREATED {
		return nil, status.Errorf(codes.Unknown, "container %q is in %s state", c.status.GetId(), c.status.GetState())
	}
	if c.config.GetLogPath() != "" {
		if err := makeLog(c.status.GetLogPath()); err != nil {
			return nil, err
		}
	}
	if err := c.begin(s.behaviour(c.status.GetMetadata().GetName()), s.now()); err != nil {
		return nil, err
	}
	return &runtimeapi.StartContainerResponse{}, nil
}

// begin starts a container, unless its start fails.
func (c *container) begin(b Behaviour, now int64) error {
	if b.StartError != "" {
		c.status.State, c.status.FinishedAt, c.status.ExitCode = runtimeapi.ContainerState_CONTAINER_EXITED, now, 128
		c.status.Reason, c.status.Message = "StartError", b.StartError
		return status.Error(codes.Unknown, b.StartError)
	}
	c.status.State, c.status.StartedAt = runtimeapi.ContainerState_CONTAINER_RUNNING, now
	c.graceful = b.Graceful
	if b.After > 0 {
		c.exitAt, c.exitCode = now+int64(b.After), b.ExitCode
	}
	return nil
}

func makeLog(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o640)
	if err != nil {
		return err
	}
	return f.Close()
}

// StopContainer ends a container like SIGTERM.
func (s *runtimeService) StopContainer(
	_ context.Context, r *runtimeapi.StopContainerRequest,
) (*runtimeapi.StopContainerResponse, error) {
	c := s.containers[r.GetContainerId()]
	if c == nil {
		return nil, notFound("container", r.GetContainerId())
	}
	s.log("StopContainer %s %d", c.status.GetMetadata().GetName(), c.status.GetMetadata().GetAttempt())
	code := int32(143)
	if c.graceful {
		code = 0
	}
	s.exit(c, code, s.now())
	if c.status.GetState() == runtimeapi.ContainerState_CONTAINER_UNKNOWN {
		c.status.State = runtimeapi.ContainerState_CONTAINER_EXITED
		c.status.FinishedAt, c.status.ExitCode = s.now(), 255
	}
	return &runtimeapi.StopContainerResponse{}, nil
}

// RemoveContainer removes a container, running or not.
func (s *runtimeService) RemoveContainer(
	_ context.Context, r *runtimeapi.RemoveContainerRequest,
) (*runtimeapi.RemoveContainerResponse, error) {
	if c := s.containers[r.GetContainerId()]; c != nil {
		s.log("RemoveContainer %s %d", c.status.GetMetadata().GetName(), c.status.GetMetadata().GetAttempt())
		delete(s.containers, r.GetContainerId())
	}
	return &runtimeapi.RemoveContainerResponse{}, nil
}

// ContainerStatus returns the status of one container.
func (s *runtimeService) ContainerStatus(
	_ context.Context, r *runtimeapi.ContainerStatusRequest,
) (*runtimeapi.ContainerStatusResponse, error) {
	c := s.containers[r.GetContainerId()]
	if c == nil {
		return nil, notFound("container", r.GetContainerId())
	}
	reply := &runtimeapi.ContainerStatusResponse{Status: proto.CloneOf(c.status)}
	if r.GetVerbose() && c.status.GetState() == runtimeapi.ContainerState_CONTAINER_RUNNING {
		reply.Info = map[string]string{"info": `{"pid":42}`}
	}
	return reply, nil
}

// ListContainers lists containers.
func (s *runtimeService) ListContainers(
	_ context.Context, r *runtimeapi.ListContainersRequest,
) (*runtimeapi.ListContainersResponse, error) {
	filter := r.GetFilter()
	reply := &runtimeapi.ListContainersResponse{}
	for _, id := range slices.Sorted(maps.Keys(s.containers)) {
		c := s.containers[id]
		if !c.matches(filter) {
			continue
		}
		reply.Containers = append(reply.Containers, &runtimeapi.Container{
			Id:           id,
			PodSandboxId: c.sandboxID,
			Metadata:     c.status.GetMetadata(),
			Image:        c.status.GetImage(),
			ImageRef:     c.status.GetImageRef(),
			State:        c.status.GetState(),
			CreatedAt:    c.status.GetCreatedAt(),
			Labels:       c.status.GetLabels(),
			Annotations:  c.status.GetAnnotations(),
		})
	}
	return reply, nil
}

// ListContainerStats returns containers with the size of their writable layers. Those that run have no usage of cpu,
// and that of UseMemory.
func (s *runtimeService) ListContainerStats(
	_ context.Context, r *runtimeapi.ListContainerStatsRequest,
) (*runtimeapi.ListContainerStatsResponse, error) {
	filter := r.GetFilter()
	asked := &runtimeapi.ContainerFilter{
		Id: filter.GetId(), PodSandboxId: filter.GetPodSandboxId(), LabelSelector: filter.GetLabelSelector(),
	}
	reply := &runtimeapi.ListContainerStatsResponse{}
	for _, id := range slices.Sorted(maps.Keys(s.containers)) {
		c := s.containers[id]
		if !c.matches(asked) {
			continue
		}
		one := &runtimeapi.ContainerStats{Attributes: &runtimeapi.ContainerAttributes{
			Id:          id,
			Metadata:    c.status.GetMetadata(),
			Labels:      c.status.GetLabels(),
			Annotations: c.status.GetAnnotations(),
		}, WritableLayer: &runtimeapi.FilesystemUsage{UsedBytes: &runtimeapi.UInt64Value{Value: c.written}}}
		if c.status.GetState() == runtimeapi.ContainerState_CONTAINER_RUNNING {
			one.Cpu, one.Memory = &runtimeapi.CpuUsage{}, &runtimeapi.MemoryUsage{}
			if c.memory > 0 {
				one.Memory.UsageBytes = &runtimeapi.UInt64Value{Value: c.memory}
			}
		}
		reply.Stats = append(reply.Stats, one)
	}
	return reply, nil
}

func (c *container) matches(filter *runtimeapi.ContainerFilter) bool {
	switch {
	case filter.GetId() != "" && filter.GetId() != c.status.GetId():
	case filter.GetPodSandboxId() != "" && filter.GetPodSandboxId() != c.sandboxID:
	case filter.GetState() != nil && filter.GetState().GetState() != c.status.GetState():
	default:
		return hasLabels(c.status.GetLabels(), filter.GetLabelSelector())
	}
	return false
}

// UpdateContainerResources stores the new resources.
func (s *runtimeService) UpdateContainerResources(
	_ context.Context, r *runtimeapi.UpdateContainerResourcesRequest,
) (*runtimeapi.UpdateContainerResourcesResponse, error) {
	c := s.containers[r.GetContainerId()]
	if c == nil {
		return nil, notFound("container", r.GetContainerId())
	}
	s.log("UpdateContainerResources %s", c.status.GetMetadata().GetName())
	c.status.Resources = &runtimeapi.ContainerResources{Linux: r.GetLinux()}
	return &runtimeapi.UpdateContainerResourcesResponse{}, nil
}

// ExecSync returns the answer set with OnExec.
func (s *runtimeService) ExecSync(
	_ context.Context, r *runtimeapi.ExecSyncRequest,
) (*runtimeapi.ExecSyncResponse, error) {
	c := s.containers[r.GetContainerId()]
	if c == nil || c.status.GetState() != runtimeapi.ContainerState_CONTAINER_RUNNING {
		return nil, status.Errorf(codes.Unknown, "container %q is not running", r.GetContainerId())
	}
	s.log("ExecSync %s %v", c.status.GetMetadata().GetName(), r.GetCmd())
	if s.commands != nil {
		return s.commands(r.GetContainerId(), r.GetCmd()), nil
	}
	return &runtimeapi.ExecSyncResponse{}, nil
}

// ReopenContainerLog recreates the log file.
func (s *runtimeService) ReopenContainerLog(
	_ context.Context, r *runtimeapi.ReopenContainerLogRequest,
) (*runtimeapi.ReopenContainerLogResponse, error) {
	c := s.containers[r.GetContainerId()]
	if c == nil {
		return nil, notFound("container", r.GetContainerId())
	}
	s.log("ReopenContainerLog %s", c.status.GetMetadata().GetName())
	return &runtimeapi.ReopenContainerLogResponse{}, makeLog(c.status.GetLogPath())
}
