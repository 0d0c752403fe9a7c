package doctor

import "slices"

// Result is how a check ended.
type Result string

// The results, the best first.
const (
	OK Result = "ok"
	// Warning: pods can run, and something about them will not be as it should.
	Warning Result = "warning"
	// Failed: pods cannot run.
	Failed Result = "failed"
)

// Check is one thing that was looked at.
type Check struct {
	Name   string `json:"name"`
	Result Result `json:"result"`
	// Found is what was found, Advice what to do about it unless it is in order.
	Found  string `json:"found"`
	Advice string `json:"advice,omitempty"`
}

func ok(found string) Check { return Check{Result: OK, Found: found} }

func warning(found, advice string) Check {
	return Check{Result: Warning, Found: found, Advice: advice}
}

func failed(found, advice string) Check {
	return Check{Result: Failed, Found: found, Advice: advice}
}

// Examine judges what was found, the runtime first, then the machine, then what is
// podctl's own.
func Examine(f *Facts) []Check {
	checks := []Check{named("endpoint", checkEndpoint(f))}
	if f.Runtime != nil {
		checks = append(checks, runtimeChecks(f)...)
	}
	checks = append(checks,
		named("cgroups", checkCgroups(f)),
		named("capabilities", checkCapabilities(f)),
		named("overlayfs", checkOverlay(f)),
		named("seccomp", checkSeccomp(f)),
		named("namespaces", checkNamespaces(f)),
		named("bridge", checkBridge(f)),
		named("forwarding", checkForwarding(f)),
	)
	for i := range f.Disks {
		checks = append(checks, named("disk", checkDisk(&f.Disks[i])))
	}
	checks = append(checks, named("clock", checkClock(f)), named("state", checkState(f)))
	if f.State.Problem == "" {
		checks = append(checks, named("journals", checkCheckpoints(f)), named("mounts", checkMounts(f)))
	}
	return checks
}

func named(name string, c Check) Check {
	c.Name = name
	return c
}

// CanRun reports whether pods can run: nothing failed.
func CanRun(checks []Check) bool { return Count(checks, Failed) == 0 }

// Count returns how many checks ended in one way.
func Count(checks []Check, result Result) int {
	return len(slices.DeleteFunc(slices.Clone(checks), func(c Check) bool { return c.Result != result }))
}
