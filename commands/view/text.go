package view

import (
	"fmt"
	"hash/fnv"
	"time"

	"github.com/fatih/color"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/podctl/podctl/commands/terminal"
	"github.com/podctl/podctl/podspec/document"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/state"
)

// Size formats a size with units of powers of 1024, like the quantities of Kubernetes: 1.5MiB.
func Size(bytes int64) string {
	size, units := float64(bytes), []string{"B", "KiB", "MiB", "GiB", "TiB", "PiB"}
	for size >= 1024 && len(units) > 1 {
		size, units = size/1024, units[1:]
	}
	return fmt.Sprintf("%.4g%s", size, units[0])
}

// Count formats a number with its noun.
func Count(n int, noun string) string { return document.Counted(n, noun) }

// LastSeen formats when an event last happened and how often (kubectl: printEvent).
func LastSeen(now time.Time, e *state.PodEvent) string {
	last := duration.HumanDuration(now.Sub(e.Last))
	if e.Count == 1 {
		return last
	}
	return fmt.Sprintf("%s (x%d over %s)", last, e.Count, duration.HumanDuration(now.Sub(e.First)))
}

// LogPrefix returns a function that formats the prefix for lines of a container's log. pod comes before the name of the
// container. Each prefix has its own colour.
func LogPrefix(colors terminal.Colors, pod string) func(string) string {
	palette := []color.Attribute{
		color.FgCyan, color.FgGreen, color.FgMagenta, color.FgYellow, color.FgBlue,
		color.FgHiCyan, color.FgHiGreen, color.FgHiMagenta,
	}
	return func(container string) string {
		name := pod + container
		sum := fnv.New32a()
		sum.Write([]byte(name))
		return colors.With(fmt.Sprintf("[%s]", name), palette[int(sum.Sum32())%len(palette)]) + " "
	}
}

// List returns a versioned list as a document.
func List[T any](kind string, items []T) any { return list(model.APIVersion, kind, items) }

// CoreList returns a v1.List, as kubectl prints it.
func CoreList[T any](items []T) any { return list("v1", "List", items) }

func list[T any](apiVersion, kind string, items []T) any {
	if items == nil {
		items = []T{}
	}
	return struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Items      []T    `json:"items"`
	}{apiVersion, kind, items}
}

// PodList returns pods as a v1.List, as kubectl prints them.
func PodList[T any](pods []T) any {
	if pods == nil {
		pods = []T{}
	}
	return struct {
		metav1.TypeMeta `json:",inline"`
		Items           []T `json:"items"`
	}{metav1.TypeMeta{APIVersion: "v1", Kind: "List"}, pods}
}
