package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Usage is what the processes of a cgroup, and of those below it, use. A nil field is not known.
type Usage struct {
	// CPU is the processor time since the cgroup was created, in nanoseconds.
	CPU *uint64
	// Memory is all memory, and Limit its limit; nil without one. WorkingSet leaves out inactive file memory, and RSS
	// is anonymous memory. Swap is memory that was swapped out. All are in bytes.
	Memory, Limit, WorkingSet, RSS, Swap *uint64
	// SwapLimit limits swap; with version 1, the sum of memory and swap. It is nil without a limit.
	SwapLimit *uint64
	// PageFaults and MajorPageFaults are counted since the cgroup was created.
	PageFaults, MajorPageFaults *uint64
	// Processes is the number of tasks in the cgroup and those below it.
	Processes *uint64
	// CPUPressure, MemoryPressure and IOPressure are times in which tasks waited. Only version 2 has them.
	CPUPressure, MemoryPressure, IOPressure *Pressure
}

// Pressure is the time in which some of the tasks of a cgroup waited for a resource, and the time in which all did
// (PSI).
type Pressure struct{ Some, Full Stall }

// Stall is a time of waiting: the total in microseconds, and averages of 10, 60 and 300 seconds in percent.
type Stall struct {
	Total                uint64
	Avg10, Avg60, Avg300 float64
}

// Usage returns the usage of a cgroup; "/" is the whole machine. A cgroup that is gone has no values.
func (Machine) Usage(name string) (Usage, error) {
	t, err := findTree()
	if err != nil {
		return Usage{}, err
	}
	return usageIn(t, name), nil
}

// Children returns the names of the cgroups directly below one; none if it is gone.
func (Machine) Children(name string) ([]string, error) {
	h, err := memoryHierarchy()
	if err != nil {
		return nil, err
	}
	return h.children(name)
}

// Pids returns the processes in a cgroup and those below it, from the hierarchy of the memory controller only.
func (Machine) Pids(name string) ([]int, error) {
	h, err := memoryHierarchy()
	if err != nil {
		return nil, err
	}
	return processesIn(os.DirFS(h.at(name)), ".")
}

// memoryHierarchy returns the hierarchy of the memory controller.
func memoryHierarchy() (hierarchy, error) {
	t, err := findTree()
	if err != nil {
		return hierarchy{}, err
	}
	h, found := t.find("memory")
	if !found {
		return hierarchy{}, errors.New("no memory cgroups are mounted on this machine")
	}
	return h, nil
}

// reader returns a function that calls another one with the directory of a cgroup in the hierarchy of a controller, if
// there is one.
func reader(t *tree, name string) func(controller string, do func(dir string)) {
	return func(controller string, do func(dir string)) {
		if h, found := t.find(controller); found {
			do(h.at(name))
		}
	}
}

// usageIn reads the files of a cgroup.
func usageIn(t *tree, name string) Usage {
	var u Usage
	read := reader(t, name)
	if t.unified {
		read("memory", u.readUnified)
		return u
	}
	read("cpuacct", func(dir string) { u.CPU = countAt(dir, "cpuacct.usage") })
	read("memory", u.readMemory)
	read("pids", func(dir string) { u.Processes = countAt(dir, "pids.current") })
	return u
}

// readMemory reads the files of version 1.
func (u *Usage) readMemory(dir string) {
	stat, err := os.ReadFile(filepath.Join(dir, "memory.stat"))
	if err != nil {
		return
	}
	counts := countsOf(string(stat))
	u.Memory = countAt(dir, "memory.usage_in_bytes")
	u.Limit, u.SwapLimit = limitAt(dir, "memory.limit_in_bytes"), limitAt(dir, "memory.memsw.limit_in_bytes")
	u.RSS, u.Swap = known(counts, "total_rss"), known(counts, "total_swap")
	u.PageFaults, u.MajorPageFaults = known(counts, "total_pgfault"), known(counts, "total_pgmajfault")
	u.setWorkingSet(known(counts, "total_inactive_file"))
}

// readUnified reads the files of version 2. The topmost cgroup lacks some of them.
func (u *Usage) readUnified(dir string) {
	if text, err := os.ReadFile(filepath.Join(dir, "cpu.stat")); err == nil {
		if micros := known(countsOf(string(text)), "usage_usec"); micros != nil {
			u.CPU = new(*micros * 1000)
		}
	}
	stat, err := os.ReadFile(filepath.Join(dir, "memory.stat"))
	if err != nil {
		return
	}
	counts := countsOf(string(stat))
	u.Memory, u.Limit = countAt(dir, "memory.current"), limitAt(dir, "memory.max")
	if _, err = os.Stat(filepath.Join(dir, "memory.current")); errors.Is(err, fs.ErrNotExist) {
		u.Memory = new(uint64(max(counts["anon"]+counts["file"], 0)))
	}
	u.RSS, u.Swap = known(counts, "anon"), countAt(dir, "memory.swap.current")
	u.SwapLimit = limitAt(dir, "memory.swap.max")
	u.PageFaults, u.MajorPageFaults = known(counts, "pgfault"), known(counts, "pgmajfault")
	u.Processes = countAt(dir, "pids.current")
	u.setWorkingSet(known(counts, "inactive_file"))
	u.CPUPressure, u.MemoryPressure = pressureAt(dir, "cpu.pressure"), pressureAt(dir, "memory.pressure")
	u.IOPressure = pressureAt(dir, "io.pressure")
}

// pressureAt parses a file with lines such as "some avg10=0.00 avg60=0.00 avg300=0.00 total=12"; nil without it. The
// kernel may have it turned off.
func pressureAt(dir, file string) *Pressure {
	text, err := os.ReadFile(filepath.Join(dir, file))
	if err != nil {
		return nil
	}
	p := &Pressure{}
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		stall := map[string]*Stall{"some": &p.Some, "full": &p.Full}[words[0]]
		if stall == nil {
			continue
		}
		for _, word := range words[1:] {
			name, value, _ := strings.Cut(word, "=")
			stall.set(name, value)
		}
	}
	return p
}

// set stores a value of a pressure file.
func (s *Stall) set(name, value string) {
	if name == "total" {
		s.Total, _ = strconv.ParseUint(value, 10, 64) // An unknown value counts as none.
		return
	}
	average := map[string]*float64{"avg10": &s.Avg10, "avg60": &s.Avg60, "avg300": &s.Avg300}[name]
	if average != nil {
		*average, _ = strconv.ParseFloat(value, 64) // the same
	}
}

func (u *Usage) setWorkingSet(inactive *uint64) {
	if u.Memory != nil && inactive != nil {
		u.WorkingSet = new(*u.Memory - min(*inactive, *u.Memory))
	}
}

// known returns a count; nil if there is none.
func known(counts map[string]int64, name string) *uint64 {
	if n, found := counts[name]; found && n >= 0 {
		return new(uint64(n))
	}
	return nil
}

// countAt returns the number in a file; nil if it cannot be read.
func countAt(dir, file string) *uint64 {
	if n, err := readCount(filepath.Join(dir, file)); err == nil && n >= 0 {
		return new(uint64(n))
	}
	return nil
}

// limitAt returns the limit in a file; nil if there is none. Version 1 shows the largest number of pages as no limit.
func limitAt(dir, file string) *uint64 {
	text, err := os.ReadFile(filepath.Join(dir, file))
	if err != nil {
		return nil
	}
	limit, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64)
	if err != nil || limit >= math.MaxInt64-1<<16 {
		return nil
	}
	return &limit
}

// WorkingSet returns the memory of all processes of the machine that cannot be reclaimed at once, in bytes. It is the
// usage of the topmost cgroup without inactive file memory (kubelet: memory.workingSet of the root container).
func WorkingSet() (int64, error) {
	u, err := Machine{}.Usage("/")
	switch {
	case err != nil:
		return 0, err
	case u.WorkingSet == nil:
		return 0, errors.New("the memory cgroups of this machine cannot be read")
	}
	return int64(min(*u.WorkingSet, math.MaxInt64)), nil
}

func readCount(path string) (int64, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	count, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", path, err)
	}
	return count, nil
}

// countsOf parses lines of a name and a number.
func countsOf(text string) map[string]int64 {
	counts := map[string]int64{}
	for line := range strings.Lines(text) {
		name, number, _ := strings.Cut(strings.TrimSpace(line), " ")
		if count, err := strconv.ParseInt(number, 10, 64); err == nil {
			counts[name] = count
		}
	}
	return counts
}
