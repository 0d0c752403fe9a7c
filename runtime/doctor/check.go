package doctor

import "slices"

// Result is the result of a check.
type Result string

// Results, the best first.
const (
	OK Result = "ok"
	// Warning means that pods can run, but with limits.
	Warning Result = "warning"
	// Failed means that pods cannot run.
	Failed Result = "failed"
)

// Check is one check.
type Check struct {
	Name   string `json:"name"`
	Result Result `json:"result"`
	// Found describes the facts. Advice describes how to fix them, if necessary.
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

// Examine checks the facts: first the runtime, then the machine, then podctl's own files.
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
		checks = append(checks, named("checkpoints", checkCheckpoints(f)), named("mounts", checkMounts(f)))
	}
	if f.APIServer != nil {
		checks = append(checks, named("API server", checkAPIServer(f.APIServer)))
	}
	return checks
}

// checkAPIServer checks the connection of a node. Pods of the machine run without it.
func checkAPIServer(s *APIServer) Check {
	switch {
	case s.Problem != "":
		return warning(s.Address+" does not respond: "+s.Problem, "pods keep running; `podctl agent status` shows more")
	case s.Refusal != "":
		return warning(s.Address+" belongs to another cluster", s.Refusal)
	}
	return ok(s.Address + " responds")
}

func named(name string, c Check) Check {
	c.Name = name
	return c
}

// CanRun reports whether pods can run, because no check failed.
func CanRun(checks []Check) bool { return Count(checks, Failed) == 0 }

// Count returns the number of checks with a result.
func Count(checks []Check, result Result) int {
	return len(slices.DeleteFunc(slices.Clone(checks), func(c Check) bool { return c.Result != result }))
}
