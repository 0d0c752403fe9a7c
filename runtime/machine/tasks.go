package machine

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
)

// Tasks returns the number of tasks and their limit (kubelet: pidlimit.Stats).
func Tasks(proc string) (running, limit int64, err error) {
	for _, name := range []string{"pid_max", "threads-max"} {
		text := strings.TrimSpace(string(contents(filepath.Join(proc, "sys/kernel", name))))
		if n, wrong := strconv.ParseInt(text, 10, 64); wrong == nil && (limit == 0 || n < limit) {
			limit = n
		}
	}
	// For example: 1.36 3.49 4.53 2/3518 3715089
	words := strings.Fields(string(contents(filepath.Join(proc, "loadavg"))))
	if len(words) < 4 || limit == 0 {
		return 0, 0, fmt.Errorf("the number of tasks cannot be read in %s", proc)
	}
	_, count, _ := strings.Cut(words[3], "/")
	running, err = strconv.ParseInt(count, 10, 64)
	return running, limit, err
}
