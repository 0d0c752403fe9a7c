package inspect

import (
	"strconv"
	"time"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/model"
	runtimesession "github.com/podctl/podctl/runtime/session"
)

// usageView shows usage to people, in kubectl's units.
type usageView struct{ containers, namespaces bool }

func (v *usageView) header() []string {
	header := []string{"POD"}
	if v.namespaces {
		header = []string{"NAMESPACE", "POD"}
	}
	if v.containers {
		header = append(header, "CONTAINER")
	}
	return append(header, "CPU(cores)", "MEMORY(bytes)", "RESTARTS")
}

func (v *usageView) rows(usage []runtimesession.PodUsage) [][]string {
	var rows [][]string
	for _, p := range usage {
		if !v.containers {
			rows = append(rows, v.row(p.Pod, nil, sum(p, cpuOf), sum(p, memoryOf), podRestarts(p)))
			continue
		}
		for i := range p.Containers {
			c := &p.Containers[i]
			rows = append(rows, v.row(p.Pod, []string{c.Name}, c.NanoCores, c.WorkingSet, c.Restarts))
		}
	}
	return rows
}

func (v *usageView) row(pod model.PodRef, name []string, cpu, memory *uint64, restarts uint32) []string {
	row := []string{pod.Name}
	if v.namespaces {
		row = []string{pod.Namespace, pod.Name}
	}
	return append(append(row, name...), cpuText(cpu), memoryText(memory), strconv.FormatUint(uint64(restarts), 10))
}

// cpuText is in thousandths of a core, rounded up: what is used is never nothing.
func cpuText(nanoCores *uint64) string {
	if nanoCores == nil {
		return "-"
	}
	return strconv.FormatUint((*nanoCores+999_999)/1_000_000, 10) + "m"
}

func memoryText(bytes *uint64) string {
	if bytes == nil {
		return "-"
	}
	return strconv.FormatUint(*bytes>>20, 10) + "Mi"
}

func cpuOf(c *runtimesession.ContainerUsage) *uint64 { return c.NanoCores }

func memoryOf(c *runtimesession.ContainerUsage) *uint64 { return c.WorkingSet }

// sum adds what is known of a pod's containers; nil when nothing is.
func sum(p runtimesession.PodUsage, of func(*runtimesession.ContainerUsage) *uint64) *uint64 {
	var total *uint64
	for i := range p.Containers {
		if value := of(&p.Containers[i]); value != nil {
			all := *value + valueOf(total)
			total = &all
		}
	}
	return total
}

func valueOf(value *uint64) uint64 {
	if value == nil {
		return 0
	}
	return *value
}

// podRestarts counts as `podctl get` does: regular containers alone.
func podRestarts(p runtimesession.PodUsage) uint32 {
	total := uint32(0)
	for _, c := range p.Containers {
		if c.Type == podspec.Regular {
			total += c.Restarts
		}
	}
	return total
}

// podMetricsList is `top -o json`.
type podMetricsList struct {
	APIVersion string       `json:"apiVersion"`
	Kind       string       `json:"kind"`
	Timestamp  time.Time    `json:"timestamp"`
	Items      []podMetrics `json:"items"`
}

type podMetrics struct {
	Pod model.PodRef `json:"pod"`
	usageValues
	Containers []containerMetrics `json:"containers"`
}

type containerMetrics struct {
	Name        string                `json:"name"`
	Type        podspec.ContainerType `json:"type"`
	ContainerID string                `json:"containerID,omitempty"`
	Running     bool                  `json:"running"`
	usageValues
}

type usageValues struct {
	NanoCores  *uint64 `json:"cpuNanoCores,omitempty"`
	WorkingSet *uint64 `json:"memoryWorkingSetBytes,omitempty"`
	Restarts   uint32  `json:"restarts"`
}

func metricsDocument(usage []runtimesession.PodUsage, now time.Time) podMetricsList {
	doc := podMetricsList{APIVersion: model.APIVersion, Kind: "PodMetricsList", Timestamp: now.UTC().Round(0), Items: []podMetrics{}}
	for _, p := range usage {
		one := podMetrics{Pod: p.Pod, usageValues: usageValues{sum(p, cpuOf), sum(p, memoryOf), podRestarts(p)}, Containers: []containerMetrics{}}
		for _, c := range p.Containers {
			one.Containers = append(one.Containers, containerMetrics{
				Name: c.Name, Type: c.Type, ContainerID: c.ID, Running: c.Running, usageValues: usageValues{c.NanoCores, c.WorkingSet, c.Restarts},
			})
		}
		doc.Items = append(doc.Items, one)
	}
	return doc
}
