package inspect

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/jsonpath"

	"github.com/podctl/podctl/commands/exit"
	"github.com/podctl/podctl/commands/flags"
	"github.com/podctl/podctl/commands/terminal"
	"github.com/podctl/podctl/commands/view"
	"github.com/podctl/podctl/runtime/observe"
)

// podPrinter writes pods in an output format, and remembers what it wrote, so that a watch
// shows what is new.
type podPrinter struct {
	io         *terminal.IO
	output     string
	sortBy     string
	containers bool
	noHeaders  bool
	// namespaces adds the pods' namespaces, single says that one pod is named.
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
	case terminal.IsDocument(p.output):
		p.remember(pods)
		if p.single && len(pods) == 1 {
			return terminal.WriteDocument(p.io.Out, p.output, pods[0])
		}
		return terminal.WriteDocument(p.io.Out, p.output, view.PodList(pods))
	case p.output == "name":
		p.remember(pods)
		p.printNames(pods)
		return nil
	case strings.HasPrefix(p.output, flags.JSONPathPrefix):
		p.remember(pods)
		return p.printPath(pods)
	}
	header, rows := p.table(pods)
	p.rememberRows(rows)
	if p.noHeaders {
		header = nil
	}
	return terminal.Table(p.io.Out, header, cellsOf(rows))
}

// printChanged writes what is not as it was written last.
func (p *podPrinter) printChanged(pods []*v1.Pod) error {
	if p.isTable() {
		header, rows := p.table(pods)
		return p.printRows(header, rows, p.rememberRows(rows))
	}
	changed := p.remember(pods)
	switch {
	case len(changed) == 0:
		return nil
	case p.output == "name":
		p.printNames(changed)
		return nil
	case strings.HasPrefix(p.output, flags.JSONPathPrefix):
		return p.printPath(changed)
	}
	for _, pod := range changed {
		if err := terminal.WriteDocument(p.io.Out, p.output, pod); err != nil {
			return err
		}
	}
	return nil
}

// printRows writes those rows of a table that changed, as wide as the whole table.
func (p *podPrinter) printRows(header []string, rows []view.Row, changed []bool) error {
	var whole strings.Builder
	if err := terminal.Table(&whole, header, cellsOf(rows)); err != nil {
		return err
	}
	lines := slices.Collect(strings.Lines(whole.String()))
	for i := range rows {
		if changed[i] {
			fmt.Fprint(p.io.Out, lines[i+1]) //nolint:errcheck // a closed pipe ends the process
		}
	}
	return nil
}

func cellsOf(rows []view.Row) [][]string {
	cells := make([][]string, 0, len(rows))
	for _, row := range rows {
		cells = append(cells, row.Cells)
	}
	return cells
}

func (p *podPrinter) printNames(pods []*v1.Pod) {
	for _, pod := range pods {
		p.io.Print("pod/%s", pod.Name)
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

// rememberRows reports which rows are not as they were before. Times that only went on are no
// change.
func (p *podPrinter) rememberRows(rows []view.Row) []bool {
	now, changed := map[string]string{}, make([]bool, len(rows))
	for i, row := range rows {
		now[row.State] = row.State
		changed[i] = p.shown[row.State] == ""
	}
	p.shown = now
	return changed
}

func (p *podPrinter) table(pods []*v1.Pod) (header []string, rows []view.Row) {
	v := &view.Pods{
		Now: p.io.Now(), Wide: p.output == "wide", Namespaces: p.namespaces,
		Owners: slices.ContainsFunc(pods, func(pod *v1.Pod) bool { return pod.Annotations[observe.AnnotationOwner] != "" }),
	}
	if p.containers {
		return v.ContainerTable(pods)
	}
	return v.Table(pods)
}

// printPath writes what a JSONPath template finds, as kubectl does: in the list,
// or in the pod that is named.
func (p *podPrinter) printPath(pods []*v1.Pod) error {
	value := view.PodList(pods)
	if p.single && len(pods) == 1 {
		value = pods[0]
	}
	return writePath(p.io.Out, p.output, value)
}

// writePath writes what a JSONPath template finds in a document.
func writePath(out io.Writer, output string, document any) error {
	path, err := parsePath(strings.TrimPrefix(output, flags.JSONPathPrefix))
	if err != nil {
		return exit.Usagef("-o jsonpath: %v", err)
	}
	data, err := asJSON(document)
	if err != nil {
		return err
	}
	var text strings.Builder
	if err = path.Execute(&text, data); err != nil {
		return err
	}
	_, err = io.WriteString(out, terminal.Printable(text.String()))
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

// sort orders pods by the field that --sort-by names. A field that none of them has is taken for a
// mistake, as in kubectl.
func (p *podPrinter) sort(pods []*v1.Pod) error {
	if p.sortBy == "" {
		return nil
	}
	path, err := parsePath(p.sortBy)
	if err != nil {
		return exit.Usagef("--sort-by: %v", err)
	}
	keys, known := map[*v1.Pod]any{}, false
	for _, pod := range pods {
		data, err := asJSON(pod)
		if err != nil {
			return err
		}
		found, err := path.FindResults(data)
		if err != nil {
			return exit.Usagef("--sort-by: %v", err)
		}
		keys[pod] = firstValue(found)
		known = known || keys[pod] != nil
	}
	if !known && len(pods) > 0 {
		return exit.Usagef("--sort-by: no pod has a field %s", p.sortBy)
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

// asJSON is a value as its JSON has it: maps, lists, text, numbers.
func asJSON(value any) (any, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("writing json: %w", err)
	}
	var out any
	err = json.Unmarshal(text, &out)
	return out, err
}
