package doctor

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Conditions of the runtime that have names in the CRI.
const (
	runtimeReady = "RuntimeReady"
	networkReady = "NetworkReady"
)

func checkEndpoint(f *Facts) Check {
	if f.Endpoint.Problem != "" {
		return failed(apart(f.Endpoint.Problem,
			"start the runtime or a private one with `podctl node up`, or name another with --runtime-endpoint"))
	}
	return ok(fmt.Sprintf("%s (%s)", f.Endpoint.Address, f.Endpoint.Origin))
}

// apart splits an error of podctl at the semicolon before its advice.
func apart(problem, advice string) (found, toDo string) {
	found, toDo, _ = strings.Cut(strings.ReplaceAll(problem, "\n", ", "), "; ")
	return found, cmp.Or(toDo, advice)
}

func runtimeChecks(f *Facts) []Check {
	checks := []Check{named("runtime", checkRuntime(f.Runtime))}
	if f.Runtime.Problem != "" {
		return checks
	}
	checks = append(checks, named("network", checkNetwork(f.Runtime)))
	if f.CNI != nil {
		checks = append(checks, named("cni", checkCNI(f.CNI)))
	}
	if f.Runtime.SandboxImage != nil {
		checks = append(checks, named("sandbox", checkSandboxImage(f.Runtime.SandboxImage)))
	}
	for _, c := range f.Runtime.Conditions {
		if c.Type != runtimeReady && c.Type != networkReady && !c.Status {
			checks = append(checks, named("condition", checkCondition(c)))
		}
	}
	return append(checks, named("kubelet", checkKubelet(f)))
}

func checkRuntime(r *Runtime) Check {
	const advice = "read the runtime's log (journalctl -u containerd or journalctl -u crio; " +
		"for a node, `podctl node status -o json` prints its path)"
	if r.Problem != "" {
		return failed(r.Problem, advice)
	}
	name := r.Name + " " + r.Version
	if c, known := r.condition(runtimeReady); !known || !c.Status {
		return failed(fmt.Sprintf("%s is not ready: %s", name, c.text()), advice)
	}
	return ok(name + ", ready")
}

func checkNetwork(r *Runtime) Check {
	if c, known := r.condition(networkReady); !known || !c.Status {
		return failed("not ready: "+c.text(),
			"install a CNI configuration and its plugins, or use `podctl node up`, which includes them; "+
				"pods with hostNetwork run without")
	}
	return ok("ready")
}

func (r *Runtime) condition(name string) (Condition, bool) {
	i := slices.IndexFunc(r.Conditions, func(c Condition) bool { return c.Type == name })
	if i < 0 {
		return Condition{Message: "the runtime does not report it"}, false
	}
	return r.Conditions[i], true
}

func (c *Condition) text() string { return cmp.Or(c.Message, c.Reason, "no reason reported") }

// checkCondition returns a warning for another condition of the runtime. containerd writes its deprecations as JSON.
func checkCondition(c Condition) Check {
	text := c.text()
	var byID map[string]string
	if json.Unmarshal([]byte(text), &byID) == nil && len(byID) > 0 {
		var texts []string
		for _, id := range slices.Sorted(maps.Keys(byID)) {
			texts = append(texts, byID[id])
		}
		text = strings.Join(texts, " ")
	}
	return warning(fmt.Sprintf("%s is false: %s", c.Type, text),
		"pods run; see the runtime's documentation for this condition")
}

func checkCNI(c *CNI) Check {
	if len(c.Configs) == 0 {
		return failed("no network configuration in "+c.ConfDir,
			"put a .conflist there, or use `podctl node up`, which includes one")
	}
	missing := slices.DeleteFunc(slices.Clone(c.Wanted), func(plugin string) bool {
		return slices.Contains(c.Installed, plugin)
	})
	dirs := strings.Join(c.PluginDirs, ", ")
	if len(missing) > 0 {
		return failed(fmt.Sprintf("plugins %s are not in %s", strings.Join(missing, ", "), dirs),
			"install them there (on Debian and Ubuntu: apt-get install containernetworking-plugins)")
	}
	if len(c.Networks) == 0 {
		return warning(fmt.Sprintf("the runtime has loaded none of %s in %s", strings.Join(c.Configs, ", "), c.ConfDir),
			"read the runtime's log for the reason; "+
				"containerd ignores a file that was moved there until it is restarted")
	}
	return ok(fmt.Sprintf("%s; plugins %s in %s", strings.Join(c.Networks, ", "), strings.Join(c.Wanted, ", "), dirs))
}

// localRegistry is the prefix for names of images that no registry has.
const localRegistry = "registry.local/"

// checkSandboxImage checks the image without which no pod starts.
func checkSandboxImage(i *SandboxImage) Check {
	switch {
	case i.Present:
		return ok("image " + i.Name)
	case i.Name == "":
		return warning("the runtime has no sandbox image",
			"the first pod pulls it; for a node of podctl, `podctl node up` prints how to load it")
	case strings.HasPrefix(i.Name, localRegistry):
		return failed("image "+i.Name+" is missing, and no registry has it",
			"load it: podctl image load pause.tar (`make images` builds bin/pause.tar, "+
				"the package has it in /usr/lib/podctl)")
	}
	return warning("image "+i.Name+" is missing: the first pod pulls it", "pull it now: podctl image pull "+i.Name)
}

func checkKubelet(f *Facts) Check {
	if f.Kubelet == nil {
		return ok("none on this runtime")
	}
	found := fmt.Sprintf("%s (pid %d) uses this runtime and kills containers that podctl starts there",
		f.Kubelet.Process, f.Kubelet.PID)
	return failed(found,
		"use another runtime (podctl node up), stop it, or put manifests into its static pod directory (podctl export)")
}
