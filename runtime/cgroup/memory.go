package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// WorkingSet returns the memory of all processes of the machine that cannot be reclaimed at once, in bytes. It is the
// usage of the topmost cgroup without inactive file memory (kubelet: memory.workingSet of the root container).
func WorkingSet() (int64, error) {
	t, err := findTree()
	if err != nil {
		return 0, err
	}
	return workingSet(t, "/")
}

func workingSet(t *tree, name string) (int64, error) {
	h, found := t.find("memory")
	if !found {
		return 0, errors.New("this machine has no memory cgroups")
	}
	usage, inactive := "memory.usage_in_bytes", "total_inactive_file"
	if t.unified {
		usage, inactive = "memory.current", "inactive_file"
	}
	stat, err := os.ReadFile(filepath.Join(h.at(name), "memory.stat"))
	if err != nil {
		return 0, err
	}
	counts := countsOf(string(stat))
	used, err := readCount(filepath.Join(h.at(name), usage))
	if t.unified && errors.Is(err, fs.ErrNotExist) {
		// The topmost cgroup of version 2 has no total (libcontainer: rootStatsFromMeminfo).
		used, err = counts["anon"]+counts["file"], nil
	}
	if err != nil {
		return 0, err
	}
	return max(used-counts[inactive], 0), nil
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
