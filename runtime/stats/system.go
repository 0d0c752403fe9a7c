package stats

import (
	"context"
	"os"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/podctl/podctl/runtime/cgroup"
	"github.com/podctl/podctl/runtime/criconfig"
)

// systemContainers measures the cgroups of the agent, of the runtime and of all pods (kubelet:
// GetSystemContainersStats). total is the memory of the machine. A kubelet knows the cgroup of the runtime only from
// its configuration.
func (m *Meter) systemContainers(ctx context.Context, total *uint64, at metav1.Time) (all []statsapi.ContainerStats) {
	add := func(name string, used cgroup.Usage, started time.Time) {
		if cpu := cpuOf(&used, at); cpu != nil {
			all = append(all, statsapi.ContainerStats{
				Name: name, StartTime: metav1.NewTime(started),
				CPU: cpu, Memory: memoryOf(&used, at), IO: ioOf(&used, at), Swap: swapOf(&used, at),
			})
		}
	}
	agent, runtime := m.services(ctx)
	if agent != "" {
		used, _ := m.Groups.Usage(agent) // Unknown values are left out.
		add(statsapi.SystemContainerKubelet, used, m.Started)
	}
	if runtime.Name != "" {
		used, _ := m.Groups.Usage(runtime.Name)
		add(statsapi.SystemContainerRuntime, used, runtime.Changed)
	}
	pods, _ := m.Groups.Usage(criconfig.CgroupOfPods(m.Node()))
	if pods.Limit == nil {
		pods.Limit = total
	}
	add(statsapi.SystemContainerPods, pods, m.Started)
	return all
}

// services returns the cgroups of the agent and of the runtime. A name is empty if the process has no cgroup of its
// own, for example without systemd, or if both processes are in the same one. The process that listens for the runtime
// can be systemd itself.
func (m *Meter) services(ctx context.Context) (agent string, runtime cgroup.Group) {
	own, err := m.Groups.Of(os.Getpid())
	if err == nil {
		agent = own.Name
	}
	pid, err := m.RuntimeProcess(ctx)
	if err != nil || pid <= 1 {
		return agent, cgroup.Group{}
	}
	if runtime, err = m.Groups.Of(pid); err != nil {
		return agent, cgroup.Group{}
	}
	if runtime.Name == agent {
		return "", cgroup.Group{}
	}
	return agent, runtime
}
