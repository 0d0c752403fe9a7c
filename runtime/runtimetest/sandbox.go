package runtimetest

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

type sandbox struct {
	config *runtimeapi.PodSandboxConfig
	status *runtimeapi.PodSandboxStatus
	name   string
}

// RunPodSandbox creates a sandbox that is ready at once.
func (s *runtimeService) RunPodSandbox(
	_ context.Context, r *runtimeapi.RunPodSandboxRequest,
) (*runtimeapi.RunPodSandboxResponse, error) {
	config := r.GetConfig()
	meta := config.GetMetadata()
	call := fmt.Sprintf("RunPodSandbox %s %d %s", meta.GetName(), meta.GetAttempt(), r.GetRuntimeHandler())
	s.log("%s", strings.TrimSpace(call))
	name := fmt.Sprintf("%s_%s_%s_%d", meta.GetName(), meta.GetNamespace(), meta.GetUid(), meta.GetAttempt())
	for id, other := range s.sandboxes {
		if other.name == name {
			return nil, reserved("sandbox", name, id)
		}
	}
	id := s.newID()
	namespaces := &runtimeapi.Namespace{Options: config.GetLinux().GetSecurityContext().GetNamespaceOptions()}
	one := &sandbox{config: config, name: name, status: &runtimeapi.PodSandboxStatus{
		Id: id, Metadata: meta, State: runtimeapi.PodSandboxState_SANDBOX_READY, CreatedAt: s.now(),
		Labels: config.GetLabels(), Annotations: config.GetAnnotations(), RuntimeHandler: r.GetRuntimeHandler(),
		Network: &runtimeapi.PodSandboxNetworkStatus{},
		Linux:   &runtimeapi.LinuxPodSandboxStatus{Namespaces: namespaces},
	}}
	if one.status.GetLinux().GetNamespaces().GetOptions().GetNetwork() == runtimeapi.NamespaceMode_POD {
		one.status.Network.Ip = fmt.Sprintf("10.0.%d.%d", s.serial/250, s.serial%250+2)
	}
	if dir := config.GetLogDirectory(); dir != "" {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return nil, err
		}
	}
	s.sandboxes[id] = one
	s.created.Sandboxes = append(s.created.Sandboxes, config)
	return &runtimeapi.RunPodSandboxResponse{PodSandboxId: id}, nil
}

// StopPodSandbox stops a sandbox and its containers.
func (s *runtimeService) StopPodSandbox(
	_ context.Context, r *runtimeapi.StopPodSandboxRequest,
) (*runtimeapi.StopPodSandboxResponse, error) {
	s.log("StopPodSandbox %s", s.sandboxName(r.GetPodSandboxId()))
	if one := s.sandboxes[r.GetPodSandboxId()]; one != nil {
		s.end(one)
	}
	return &runtimeapi.StopPodSandboxResponse{}, nil
}

// RemovePodSandbox removes a sandbox and its containers.
func (s *runtimeService) RemovePodSandbox(
	_ context.Context, r *runtimeapi.RemovePodSandboxRequest,
) (*runtimeapi.RemovePodSandboxResponse, error) {
	s.log("RemovePodSandbox %s", s.sandboxName(r.GetPodSandboxId()))
	if one := s.sandboxes[r.GetPodSandboxId()]; one != nil {
		s.end(one)
		maps.DeleteFunc(s.containers, func(_ string, c *container) bool { return c.sandboxID == one.status.GetId() })
		delete(s.sandboxes, r.GetPodSandboxId())
	}
	return &runtimeapi.RemovePodSandboxResponse{}, nil
}

// PodSandboxStatus returns the status of one sandbox.
func (s *runtimeService) PodSandboxStatus(
	_ context.Context, r *runtimeapi.PodSandboxStatusRequest,
) (*runtimeapi.PodSandboxStatusResponse, error) {
	one := s.sandboxes[r.GetPodSandboxId()]
	if one == nil {
		return nil, notFound("sandbox", r.GetPodSandboxId())
	}
	return &runtimeapi.PodSandboxStatusResponse{Status: proto.CloneOf(one.status)}, nil
}

// ListPodSandbox lists sandboxes.
func (s *runtimeService) ListPodSandbox(
	_ context.Context, r *runtimeapi.ListPodSandboxRequest,
) (*runtimeapi.ListPodSandboxResponse, error) {
	filter := r.GetFilter()
	reply := &runtimeapi.ListPodSandboxResponse{}
	for _, id := range slices.Sorted(maps.Keys(s.sandboxes)) {
		st := s.sandboxes[id].status
		if (filter.GetId() != "" && filter.GetId() != id) || !hasLabels(st.GetLabels(), filter.GetLabelSelector()) {
			continue
		}
		if filter.GetState() != nil && filter.GetState().GetState() != st.GetState() {
			continue
		}
		reply.Items = append(reply.Items, &runtimeapi.PodSandbox{
			Id:          id,
			Metadata:    st.GetMetadata(),
			State:       st.GetState(),
			CreatedAt:   st.GetCreatedAt(),
			Labels:      st.GetLabels(),
			Annotations: st.GetAnnotations(),
		})
	}
	return reply, nil
}

func hasLabels(labels, wanted map[string]string) bool {
	for key, value := range wanted {
		if labels[key] != value {
			return false
		}
	}
	return true
}
