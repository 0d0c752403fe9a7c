package runtimetest

import (
	"context"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// Version names the runtime.
func (s *runtimeService) Version(context.Context, *runtimeapi.VersionRequest) (*runtimeapi.VersionResponse, error) {
	return &runtimeapi.VersionResponse{
		Version:           "0.1.0",
		RuntimeName:       "memory",
		RuntimeVersion:    "1",
		RuntimeApiVersion: "v1",
	}, nil
}

// Status reports whether the network is ready.
func (s *runtimeService) Status(context.Context, *runtimeapi.StatusRequest) (*runtimeapi.StatusResponse, error) {
	conditions := []*runtimeapi.RuntimeCondition{
		{Type: runtimeapi.RuntimeReady, Status: true},
		{Type: runtimeapi.NetworkReady, Status: s.notReady == "", Message: s.notReady},
	}
	handlers := []*runtimeapi.RuntimeHandler{{Name: ""}}
	for _, name := range s.handlers {
		handlers = append(handlers, &runtimeapi.RuntimeHandler{Name: name})
	}
	return &runtimeapi.StatusResponse{
		Status:          &runtimeapi.RuntimeStatus{Conditions: conditions},
		RuntimeHandlers: handlers,
	}, nil
}

// RuntimeConfig returns the cgroup driver.
func (s *runtimeService) RuntimeConfig(
	context.Context, *runtimeapi.RuntimeConfigRequest,
) (*runtimeapi.RuntimeConfigResponse, error) {
	return &runtimeapi.RuntimeConfigResponse{
		Linux: &runtimeapi.LinuxRuntimeConfiguration{CgroupDriver: runtimeapi.CgroupDriver_CGROUPFS},
	}, nil
}
