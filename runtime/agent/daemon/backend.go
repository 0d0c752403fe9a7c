package daemon

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/podctl/podctl/runtime/agent"
	"github.com/podctl/podctl/runtime/agent/api"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/sleep"
)

// backend answers requests to a daemon. The agent answers those that need nothing else.
type backend struct {
	*agent.Agent
	daemon *daemon
}

// errNoCluster is the error of requests about a cluster to an agent without one.
var errNoCluster = errors.New("this machine is not a node of a cluster: start the agent with --kubeconfig")

// ClusterPods returns the pods of the node in the API server.
func (b backend) ClusterPods(ctx context.Context) (*api.ClusterPods, error) {
	if b.daemon.joined == nil {
		return nil, errNoCluster
	}
	return b.daemon.joined.Pods(ctx), nil
}

// Status returns the status of the agent with its devices, and with that of the node in a cluster.
func (b backend) Status(ctx context.Context) (*api.Status, error) {
	s, err := b.Agent.Status(ctx)
	if err != nil {
		return nil, err
	}
	s.Devices = b.daemon.devices.Resources()
	if b.daemon.joined != nil {
		b.daemon.joined.Describe(s)
	}
	return s, nil
}

// Devices returns the manager of devices.
func (b backend) Devices() model.DeviceManager { return b.daemon.devices }

// Reload reads the configuration. If it is unchanged, the agent reads every source. Otherwise the agent restarts, which
// does not affect pods. An invalid configuration changes nothing.
func (b backend) Reload(ctx context.Context) (*api.Reloaded, error) {
	changed, err := b.daemon.Changes(ctx)
	if err != nil {
		return nil, fmt.Errorf("the agent keeps its current configuration: %w", err)
	}
	if len(changed) == 0 {
		return b.Agent.Reload(ctx)
	}
	b.daemon.Log.Info("restarting with the changed configuration", "changed", strings.Join(changed, ","))
	sleep.Wake(b.daemon.restart)
	return &api.Reloaded{}, nil
}

// reloadOnSignals reloads on signals.
func (b backend) reloadOnSignals(ctx context.Context) {
	for {
		select {
		case <-b.daemon.Hangups:
			notifyReloading(func() {
				done, err := b.Reload(ctx)
				if err != nil {
					b.daemon.Log.Error("the configuration cannot be used", "error", err.Error())
					return
				}
				for _, name := range done.Reading {
					b.daemon.Log.Warn("the source is still being read", "source", name)
				}
			})
		case <-ctx.Done():
			return
		}
	}
}
