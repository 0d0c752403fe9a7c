package inspect

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/utils/ptr"

	"github.com/podctl/podctl/commands/terminal"
	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/model"
	runtimesession "github.com/podctl/podctl/runtime/session"
)

// usageView shows usage to people, in kubectl's units.
type usageView struct {
	containers, namespaces bool
	// history adds columns of what was used before; nil for none.
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
		cpuText(u.CPULimit), percent(u.NanoCores, u.CPULimit), memoryText(u.MemoryLimit), percent(u.WorkingSet, u.MemoryLimit))
	if v.history != nil {
		row = append(row, v.history.columns(strings.Join(append([]string{pod.String()}, name...), "/"), u)...)
	}
	return row
}

// expendable are the columns that give way on a narrow terminal, the first first.
func expendable() []string {
	return []string{"RESTARTS", "CPU-LIMIT", "MEMORY-LIMIT", "MEMORY-HISTORY", "CPU-HISTORY", "CPU%", "MEMORY%"}
}

// fitting is a table without the columns for which a terminal has no room.
func fitting(header []string, rows [][]string, width int) ([]string, [][]string) {
	for _, name := range expendable() {
		if terminal.TableWidth(header, rows) <= width {
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

// percent is how much of a limit is used.
func percent(used, limit *uint64) string {
	if used == nil || limit == nil || *limit == 0 {
		return "-"
	}
	return strconv.FormatFloat(math.Round(100*float64(*used)/float64(*limit)), 'f', -1, 64) + "%"
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
			all := *value + ptr.Deref(total, 0)
			total = &all
		}
	}
	return total
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
	// The limits of the manifest; absent where there is none.
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
	doc := podMetricsList{APIVersion: model.APIVersion, Kind: "PodMetricsList", Timestamp: now.UTC().Round(0), Items: []podMetrics{}}
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

// historySize is how many looks a history shows.
const historySize = 20

// usageHistory remembers what was used at the last looks, by the row that shows it.
type usageHistory struct{ cpu, memory map[string][]uint64 }

func newUsageHistory() *usageHistory {
	return &usageHistory{cpu: map[string][]uint64{}, memory: map[string][]uint64{}}
}

// add takes in one look. What is not there any more is forgotten.
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

// columns draw the histories of a row, as parts of the limits or else of the most that was used.
func (h *usageHistory) columns(key string, u usageValues) []string {
	return []string{history(h.cpu[key], u.CPULimit), history(h.memory[key], u.MemoryLimit)}
}

// history has its full width from the start, so that no column moves while it grows.
func history(values []uint64, limit *uint64) string {
	return sparkline(values, ptr.Deref(limit, 0)) + strings.Repeat(" ", historySize-len(values))
}

// sparkline draws values as bars. Without a limit the highest value is the full bar.
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
