package e2e

import (
	"os"
	"slices"
	"strconv"
	"testing"
	"time"
)

// slowness returns how many times slower than usual this machine is, from PODCTL_TEST_SLOWNESS. It is set for emulated
// machines.
func slowness() time.Duration {
	n, err := strconv.Atoi(os.Getenv("PODCTL_TEST_SLOWNESS"))
	if err != nil || n < 1 {
		return 1
	}
	return time.Duration(n)
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
		t.Skipf("it measures time, and this machine is %d times slower than usual: %s", slowness(), why)
	}
}
