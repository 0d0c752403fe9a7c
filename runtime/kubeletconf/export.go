package kubeletconf

import (
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/podctl/podctl/podspec/fields"
	"github.com/podctl/podctl/podspec/input"
)

// Agent has the settings of an agent of podctl.
type Agent struct {
	// Values are the texts of its flags, by their names.
	Values map[string]string
	// Sources are the directories, files and URLs of its pods.
	Sources []string
	// SystemdCgroup reports whether the runtime uses the cgroup driver of systemd; nil if it did not answer.
	SystemdCgroup *bool
}

// Exported are the settings of a kubelet for the node of an agent.
type Exported struct {
	// Configuration is a KubeletConfiguration.
	Configuration map[string]any
	// Flags are the settings that only flags of a kubelet have.
	Flags []string
	// Notes lists the settings of podctl that a kubelet does not have.
	Notes []string
}

// Export returns the settings of a kubelet that takes the place of an agent. The values come from the flags of podctl,
// so they are valid.
func Export(a Agent) Exported {
	e := Exported{Configuration: map[string]any{"apiVersion": apiVersion, "kind": kind}}
	// podctl does this without settings.
	e.set("failSwapOn", false)
	e.set("failCgroupV1", false)
	e.set("authentication.webhook.enabled", true)
	for _, row := range All() {
		text := a.Values[row.Setting]
		switch {
		case row.Support != fields.Honoured || text == "" || row.Form >= List && text == "[]":
		case row.Setting == "sources" || row.Setting == "max-parallel-pulls" || row.Flag == "kube-reserved":
			// exportSources and exportPulls have the first two. Reserved resources are one sum in podctl.
		case row.Path != "":
			e.set(row.Path, row.Form.value(text))
		case !row.isSame(text) || row.Default != "":
			e.Flags = append(e.Flags, "--"+row.Flag+"="+strings.Trim(text, "[]"))
		}
	}
	e.Flags = append(e.Flags, "--cert-dir="+filepath.Join(a.Values["state-dir"], "pki"))
	if a.Values["bootstrap-kubeconfig"] != "" {
		e.set("rotateCertificates", true) // It is implied in podctl.
	}
	e.exportPulls(a.Values["max-parallel-pulls"])
	e.exportSources(a.Sources)
	switch {
	case a.SystemdCgroup == nil:
		e.Notes = append(e.Notes, "the runtime did not answer: set cgroupDriver to its cgroup driver")
	case *a.SystemdCgroup:
		e.set("cgroupDriver", "systemd")
	default:
		e.set("cgroupDriver", "cgroupfs")
	}
	if a.Values["shutdown-grace-period"] == "0s" {
		e.Notes = append(e.Notes, "a kubelet without shutdownGracePeriod does not stop pods before a shutdown; "+
			"one with it ends them for good")
	}
	if a.Values["eviction"] == "false" {
		e.Notes = append(e.Notes, "a kubelet evicts pods although --eviction is off")
	}
	return e
}

// set sets a field of the configuration.
func (e *Exported) set(path string, value any) {
	tree := e.Configuration
	parts := strings.Split(path, ".")
	for _, part := range parts[:len(parts)-1] {
		below, is := tree[part].(map[string]any)
		if !is {
			below = map[string]any{}
			tree[part] = below
		}
		tree = below
	}
	tree[parts[len(parts)-1]] = value
}

func (e *Exported) exportPulls(text string) {
	limit, err := strconv.Atoi(text)
	if err != nil {
		return
	}
	e.set("serializeImagePulls", limit == 1)
	if limit > 1 {
		e.set("maxParallelImagePulls", limit)
	}
}

// exportSources sets the sources of static pods. A kubelet has one path and one URL.
func (e *Exported) exportSources(sources []string) {
	for _, source := range sources {
		field := "staticPodPath"
		if input.IsURL(source) {
			field = "staticPodURL"
		}
		if _, isSet := e.Configuration[field]; isSet {
			e.Notes = append(e.Notes, "a kubelet has one directory and one URL of pods: "+
				Setting{"sources", source}.String()+" is left out")
			continue
		}
		e.set(field, source)
	}
}

// value returns the value of a field from the text of podctl's flag.
func (form Form) value(text string) any {
	switch form {
	case Number:
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			return n
		}
	case Boolean:
		return text == "true"
	case List:
		return listOf(text)
	case Pairs:
		return pairsOf(text, "=")
	case Thresholds:
		return pairsOf(text, "<")
	case Taints:
		return taintsOf(text)
	case Tree, Text, Duration:
	}
	return text
}

// listOf splits a list. Flags of pflag print theirs in brackets.
func listOf(text string) []string {
	return slices.DeleteFunc(strings.Split(strings.Trim(text, "[]"), ","), func(one string) bool { return one == "" })
}

func pairsOf(text, sign string) map[string]string {
	pairs := map[string]string{}
	for _, one := range listOf(text) {
		name, value, _ := strings.Cut(one, sign)
		pairs[strings.TrimSpace(name)] = strings.TrimSpace(value)
	}
	return pairs
}

func taintsOf(text string) (taints []map[string]string) {
	for _, one := range listOf(text) {
		pair, effect, _ := strings.Cut(one, ":")
		key, value, _ := strings.Cut(pair, "=")
		taint := map[string]string{"key": key, "effect": effect}
		if value != "" {
			taint["value"] = value
		}
		taints = append(taints, taint)
	}
	return taints
}
