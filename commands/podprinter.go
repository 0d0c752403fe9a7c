package commands

import (
	"cmp"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/jsonpath"

	"github.com/podctl/podctl/runtime/observe"
)

const jsonPathPrefix = "jsonpath="

// podPrinter writes pods in the form that was asked for, and remembers what it
// wrote, so that a watch shows what is new.
type podPrinter struct {
	g          *globals
	output     string
	sortBy     string
	containers bool
	noHeaders  bool
	// namespaces adds the pods' namespaces, single tells that one pod was asked for.
	namespaces bool
	single     bool
	shown      map[string]string
}

func (p *podPrinter) isTable() bool {
	return p.output == "" || p.output == "text" || p.output == "wide"
}

// print writes all pods.
func (p *podPrinter) print(pods []*v1.Pod) error {
	switch {
	case isDocument(p.output):
		p.remember(pods)
		if p.single && len(pods) == 1 {
			return writeDocument(p.g.env.Out, p.output, pods[0])
		}
		return writeDocument(p.g.env.Out, p.output, podList(pods))
	case p.output == "name":
		p.remember(pods)
		p.printNames(pods)
		return nil
	case strings.HasPrefix(p.output, jsonPathPrefix):
		p.remember(pods)
		return p.printPath(pods)
	}
	header, rows := p.table(pods)
	p.rememberRows(header, rows)
	if p.noHeaders {
		header = nil
	}
	return table(p.g.env.Out, header, rows)
}

// printChanged writes what is not as it was written last.
func (p *podPrinter) printChanged(pods []*v1.Pod) error {
	if p.isTable() {
		header, rows := p.table(pods)
		return p.printRows(header, rows, p.rememberRows(header, rows))
	}
	changed := p.remember(pods)
	switch {
	case len(changed) == 0:
		return nil
	case p.output == "name":
		p.printNames(changed)
		return nil
	case strings.HasPrefix(p.output, jsonPathPrefix):
		return p.printPath(changed)
	}
	for _, pod := range changed {
		if err := writeDocument(p.g.env.Out, p.output, pod); err != nil {
			return err
		}
	}
	return nil
}

// printRows writes those rows of a table that changed, as wide as the whole table.
func (p *podPrinter) printRows(header []string, rows [][]string, changed []bool) error {
	var whole strings.Builder
	if err := table(&whole, header, rows); err != nil {
		return err
	}
	lines := slices.Collect(strings.Lines(whole.String()))
	for i := range rows {
		if changed[i] {
			fmt.Fprint(p.g.env.Out, lines[i+1]) //nolint:errcheck // a closed pipe ends the process
		}
	}
	return nil
}

func (p *podPrinter) printNames(pods []*v1.Pod) {
	for _, pod := range pods {
		p.g.print("pod/%s", pod.Name)
	}
}

// remember returns the pods that are not as they were before.
func (p *podPrinter) remember(pods []*v1.Pod) []*v1.Pod {
	now := map[string]string{}
	changed := slices.DeleteFunc(slices.Clone(pods), func(pod *v1.Pod) bool {
		text := pod.Status.String()
		now[string(pod.UID)] = text
		return p.shown[string(pod.UID)] == text
	})
	p.shown = now
	return changed
}

// rememberRows tells which rows are not as they were before. Times that only went
// on are no change.
func (p *podPrinter) rememberRows(header []string, rows [][]string) []bool {
	age, restarts := slices.Index(header, "AGE"), slices.Index(header, "RESTARTS")
	now, changed := map[string]string{}, make([]bool, len(rows))
	for i, row := range rows {
		same := slices.Clone(row)
		same[age] = ""
		same[restarts], _, _ = strings.Cut(same[restarts], " ")
		text := strings.Join(same, "\x00")
		now[text] = text
		changed[i] = p.shown[text] == ""
	}
	p.shown = now
	return changed
}

func (p *podPrinter) table(pods []*v1.Pod) (header []string, rows [][]string) {
	v := &podView{
		now: p.g.env.Now(), wide: p.output == "wide", namespaces: p.namespaces,
		owners: slices.ContainsFunc(pods, func(pod *v1.Pod) bool { return pod.Annotations[observe.AnnotationOwner] != "" }),
	}
	if p.containers {
		return v.containerHeader(), v.containerRows(pods)
	}
	return v.header(), v.rows(pods)
}

// printPath writes what a JSONPath template finds, as kubectl does: in the list,
// or in the pod that was asked for.
func (p *podPrinter) printPath(pods []*v1.Pod) error {
	path, err := parsePath(strings.TrimPrefix(p.output, jsonPathPrefix))
	if err != nil {
		return usagef("-o jsonpath: %v", err)
	}
	value := podList(pods)
	if p.single && len(pods) == 1 {
		value = pods[0]
	}
	data, err := generic(value)
	if err != nil {
		return err
	}
	var text strings.Builder
	if err = path.Execute(&text, data); err != nil {
		return err
	}
	_, err = io.WriteString(p.g.env.Out, printable(text.String()))
	return err
}

// parsePath reads a JSONPath; braces and the leading point may be left out, as
// kubectl allows.
func parsePath(text string) (*jsonpath.JSONPath, error) {
	if !strings.Contains(text, "{") {
		text = "{." + strings.TrimPrefix(text, ".") + "}"
	}
	path := jsonpath.New("pods").AllowMissingKeys(true)
	return path, path.Parse(text)
}

// sort orders pods by the field that --sort-by names.
func (p *podPrinter) sort(pods []*v1.Pod) error {
	if p.sortBy == "" {
		return nil
	}
	path, err := parsePath(p.sortBy)
	if err != nil {
		return usagef("--sort-by: %v", err)
	}
	keys := map[*v1.Pod]any{}
	for _, pod := range pods {
		data, err := generic(pod)
		if err != nil {
			return err
		}
		found, err := path.FindResults(data)
		if err != nil {
			return usagef("--sort-by: %v", err)
		}
		keys[pod] = firstValue(found)
	}
	slices.SortStableFunc(pods, func(a, b *v1.Pod) int { return compareValues(keys[a], keys[b]) })
	return nil
}

func firstValue(found [][]reflect.Value) any {
	if len(found) == 0 || len(found[0]) == 0 {
		return nil
	}
	return found[0][0].Interface()
}

// compareValues orders numbers by size and all else as text; times in RFC 3339 are
// in order as text. What has no value comes first.
func compareValues(a, b any) int {
	x, isNumber := a.(float64)
	if y, both := b.(float64); isNumber && both {
		return cmp.Compare(x, y)
	}
	return cmp.Compare(textOf(a), textOf(b))
}

func textOf(value any) string {
	if value == nil {
		return ""
	}
	return fmt.Sprint(value)
}
