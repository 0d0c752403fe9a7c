package inspect

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/utils/ptr"

	"github.com/podctl/podctl/commands/table"
	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/model"
	runtimesession "github.com/podctl/podctl/runtime/session"
)

// usageView formats usage as a table, in kubectl's units.
type usageView struct {
	containers, namespaces bool
	// history adds columns with previous usage. It is nil if they are not shown.
	history *usageHistory
}

func (v *usageView) header() []string {
	header := []string{"POD"}
	if v.namespaces {
		header = []string{"NAMESPACE", "POD"}
	}
	if v.containers {
		header = append(header, "CONTAINER")
	}
	header = append(header, "CPU(cores)", "MEMORY(bytes)", "RESTARTS", "CPU-LIMIT", "CPU%", "MEMORY-LIMIT", "MEMORY%")
	if v.history != nil {
		header = append(header, "CPU-HISTORY", "MEMORY-HISTORY")
	}
	return header
}

func (v *usageView) rows(usage []runtimesession.PodUsage) [][]string {
	var rows [][]string
	for _, p := range usage {
		if !v.containers {
			rows = append(rows, v.row(p.Pod, nil, podValues(p)))
			continue
		}
		for i := range p.Containers {
			c := &p.Containers[i]
			rows = append(rows, v.row(p.Pod, []string{c.Name}, valuesOf(c)))
		}
	}
	return rows
}

func (v *usageView) row(pod model.PodRef, name []string, u usageValues) []string {
	row := []string{pod.Name}
	if v.namespaces {
		row = []string{pod.Namespace, pod.Name}
	}
	row = append(append(row, name...),
		cpuText(u.NanoCores), memoryText(u.WorkingSet), strconv.FormatUint(uint64(u.Restarts), 10),
		cpuText(u.CPULimit), percent(u.NanoCores, u.CPULimit),
		memoryText(u.MemoryLimit), percent(u.WorkingSet, u.MemoryLimit))
	if v.history != nil {
		row = append(row, v.history.columns(strings.Join(append([]string{pod.String()}, name...), "/"), u)...)
	}
	return row
}

// expendable returns the columns to drop on a narrow terminal, in this order.
func expendable() []string {
	return []string{"RESTARTS", "CPU-LIMIT", "MEMORY-LIMIT", "MEMORY-HISTORY", "CPU-HISTORY", "CPU%", "MEMORY%"}
}

// fitting drops columns until the table fits into width.
func fitting(header []string, rows [][]string, width int) ([]string, [][]string) {
	for _, name := range expendable() {
		if table.Width(header, rows) <= width {
			break
		}
		at := slices.Index(header, name)
		if at < 0 {
			continue
		}
		header = slices.Delete(slices.Clone(header), at, at+1)
		narrower := make([][]string, 0, len(rows))
		for _, row := range rows {
			narrower = append(narrower, slices.Delete(slices.Clone(row), at, at+1))
		}
		rows = narrower
	}
	return header, rows
}

// percent returns the used part of a limit.
func percent(used, limit *uint64) string {
	if used == nil || limit == nil || *limit == 0 {
		return "-"
	}
	return strconv.FormatFloat(math.Round(100*float64(*used)/float64(*limit)), 'f', -1, 64) + "%"
}

// cpuText returns thousandths of a core, rounded up, so that usage is never shown as 0.
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

// sum adds the known values of a pod's containers. It returns nil if none is known.
func sum(p runtimesession.PodUsage, of func(*runtimesession.ContainerUsage) *uint64) *uint64 {
	var total *uint64
	for i := range p.Containers {
		if value := of(&p.Containers[i]); value != nil {
			all := *value + ptr.Deref(total, 0)
			total = &all
		}
	}
	return total
}

// podRestarts counts only regular containers, like `podctl get`.
func podRestarts(p runtimesession.PodUsage) uint32 {
	total := uint32(0)
	for _, c := range p.Containers {
		if c.Type == podspec.Regular {
			total += c.Restarts
		}
	}
	return total
}

// podMetricsList is the output of `top -o json`.
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
	// The limits of the manifest. They are nil if the manifest has none.
	CPULimit    *uint64 `json:"cpuLimitNanoCores,omitempty"`
	MemoryLimit *uint64 `json:"memoryLimitBytes,omitempty"`
}

func podValues(p runtimesession.PodUsage) usageValues {
	return usageValues{sum(p, cpuOf), sum(p, memoryOf), podRestarts(p), p.Limits.NanoCores, p.Limits.Memory}
}

func valuesOf(c *runtimesession.ContainerUsage) usageValues {
	return usageValues{c.NanoCores, c.WorkingSet, c.Restarts, c.Limits.NanoCores, c.Limits.Memory}
}

func metricsDocument(usage []runtimesession.PodUsage, now time.Time) podMetricsList {
	doc := podMetricsList{
		APIVersion: model.APIVersion,
		Kind:       "PodMetricsList",
		Timestamp:  now.UTC().Round(0),
		Items:      []podMetrics{},
	}
	for _, p := range usage {
		one := podMetrics{Pod: p.Pod, usageValues: podValues(p), Containers: []containerMetrics{}}
		for i := range p.Containers {
			c := &p.Containers[i]
			one.Containers = append(one.Containers, containerMetrics{
				Name: c.Name, Type: c.Type, ContainerID: c.ID, Running: c.Running, usageValues: valuesOf(c),
			})
		}
		doc.Items = append(doc.Items, one)
	}
	return doc
}

// historySize is the number of samples in a history.
const historySize = 20

// usageHistory has the last samples by the name of the row.
type usageHistory struct{ cpu, memory map[string][]uint64 }

func newUsageHistory() *usageHistory {
	return &usageHistory{cpu: map[string][]uint64{}, memory: map[string][]uint64{}}
}

// add adds a sample. It drops the history of pods and containers that no longer exist.
func (h *usageHistory) add(usage []runtimesession.PodUsage) {
	cpu, memory := map[string][]uint64{}, map[string][]uint64{}
	put := func(key string, u usageValues) {
		cpu[key] = last(append(h.cpu[key], ptr.Deref(u.NanoCores, 0)))
		memory[key] = last(append(h.memory[key], ptr.Deref(u.WorkingSet, 0)))
	}
	for _, p := range usage {
		put(p.Pod.String(), podValues(p))
		for i := range p.Containers {
			put(p.Pod.String()+"/"+p.Containers[i].Name, valuesOf(&p.Containers[i]))
		}
	}
	h.cpu, h.memory = cpu, memory
}

func last(values []uint64) []uint64 { return values[max(len(values)-historySize, 0):] }

// columns draws the histories of a row, relative to the limits or, without a limit, to the highest value.
func (h *usageHistory) columns(key string, u usageValues) []string {
	return []string{history(h.cpu[key], u.CPULimit), history(h.memory[key], u.MemoryLimit)}
}

// history pads the drawing to its full width, so that columns do not move while it grows.
func history(values []uint64, limit *uint64) string {
	return sparkline(values, ptr.Deref(limit, 0)) + strings.Repeat(" ", historySize-len(values))
}

// sparkline draws values as bars. Without a limit, the highest value is the full bar.
func sparkline(values []uint64, limit uint64) string {
	bars := []rune("▁▂▃▄▅▆▇█")
	full := limit
	for _, v := range values {
		full = max(full, v)
	}
	var b strings.Builder
	for _, v := range values {
		at := 0
		if full > 0 {
			at = int(float64(v) / float64(full) * float64(len(bars)-1))
		}
		b.WriteRune(bars[at])
	}
	return b.String()
}
