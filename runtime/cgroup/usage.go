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
	// PageFaults and MajorPageFaults are counted since the cgroup was created.
	PageFaults, MajorPageFaults *uint64
	// Processes is the number of processes in the cgroup and those below it.
	Processes *uint64
}

// Usage returns the usage of a cgroup; "/" is the whole machine. A cgroup that is gone has no values.
func (Machine) Usage(name string) (Usage, error) {
	t, err := findTree()
	if err != nil {
		return Usage{}, err
	}
	return usageIn(t, func(h hierarchy) string { return h.at(name) }), nil
}

// ContainerUsage returns the usage of a container below the possible cgroups of its pod.
func (Machine) ContainerUsage(pods []string, containerID string) (Usage, error) {
	t, err := findTree()
	if err != nil {
		return Usage{}, err
	}
	return usageIn(t, func(h hierarchy) string {
		for _, dir := range h.containers(pods, containerID) {
			return dir
		}
		return ""
	}), nil
}

// usageIn reads the files of a cgroup. dir returns its directory in a hierarchy; empty if there is none.
func usageIn(t *tree, dir func(hierarchy) string) Usage {
	var u Usage
	read := func(controller string, do func(dir string)) {
		if h, found := t.find(controller); found {
			if at := dir(h); at != "" {
				do(at)
			}
		}
	}
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
	u.Limit = limitAt(dir, "memory.limit_in_bytes")
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
	u.PageFaults, u.MajorPageFaults = known(counts, "pgfault"), known(counts, "pgmajfault")
	u.Processes = countAt(dir, "pids.current")
	u.setWorkingSet(known(counts, "inactive_file"))
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
