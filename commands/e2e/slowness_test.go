package e2e

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// slownessMax is the slowness of emulated machines, on which all tests have run.
const slownessMax = 20

// slowness returns how many times slower than usual this machine is. It is PODCTL_TEST_SLOWNESS, which is set for
// emulated machines, or else the number of runnable threads for each core. That is the lowest number within a second,
// because a quiet machine, too, is busy for moments.
var slowness = sync.OnceValue(func() time.Duration {
	if n, err := strconv.Atoi(os.Getenv("PODCTL_TEST_SLOWNESS")); err == nil {
		return time.Duration(max(n, 1))
	}
	// Not those of this process: a container can have a part of the machine, but sees the load of all of it.
	stat, _ := os.ReadFile("/proc/stat")
	cores := max(strings.Count(string(stat), "\ncpu"), 1)
	fewest := slownessMax * cores
	for range 10 {
		fewest = min(fewest, otherRunnable())
		time.Sleep(100 * time.Millisecond)
	}
	return time.Duration(max(fewest/cores, 1))
})

// otherRunnable returns the number of runnable threads on this machine without the thread that asks, or a negative
// number if it is unknown.
func otherRunnable() int {
	text, _ := os.ReadFile("/proc/loadavg")
	// 0.20 0.18 0.12 1/80 11206: the fourth field has the runnable threads and all threads.
	fields := strings.Fields(string(text) + " - - - -")
	running, _, _ := strings.Cut(fields[3], "/")
	n, _ := strconv.Atoi(running)
	return n - 1
}

// patient returns a time limit adjusted to this machine.
func patient(limit time.Duration) time.Duration { return limit * slowness() }

// patiently returns arguments of podctl with the time limit adjusted to this machine. It does not change limits in one
// word, --timeout=1s, which a test wants to expire.
func patiently(args []string) []string {
	args = slices.Clone(args)
	for i := 1; i < len(args); i++ {
		if args[i] == "--" {
			break
		}
		if limit, err := time.ParseDuration(args[i]); err == nil && args[i-1] == "--timeout" {
			args[i] = patient(limit).String()
		}
	}
	return args
}

// measured has the tests that measure time, with the reason. They are meaningless on a slow machine.
func measured() map[string]string {
	return map[string]string{
		"replacement starts early": "what overlaps depends on how fast the machine is",
		"liveness":                 "probes within one period",
		"stops":                    "how long stops take",
		"deadline":                 "how long a stop takes",
		"top/live":                 "how many tables there are in a second",
		"doctor":                   "when a check that takes its time is given up",
		"random faults":            "trials within a minute each",
	}
}

// skipMeasured skips such a test on a slow machine.
func skipMeasured(t *testing.T, name string) {
	t.Helper()
	if why := measured()[name]; why != "" && slowness() > 1 {
		t.Skipf("it measures time, and this machine is %d times slower than usual (PODCTL_TEST_SLOWNESS=1 runs it): %s",
			slowness(), why)
	}
}
