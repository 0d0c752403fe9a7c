package inspect

import (
	"strings"

	runtimesession "github.com/podctl/podctl/runtime/session"
)

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
		cpu[key] = last(append(h.cpu[key], valueOf(u.NanoCores)))
		memory[key] = last(append(h.memory[key], valueOf(u.WorkingSet)))
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
	return sparkline(values, valueOf(limit)) + strings.Repeat(" ", historySize-len(values))
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
