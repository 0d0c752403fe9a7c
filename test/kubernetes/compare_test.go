package kubernetes

import (
	"bufio"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
)

// Documents of the same pods are compared field by field. What differs must be in testdata/documents.differ.txt, with
// the rule that it follows from; a row that nothing follows from any more fails the test.

// difference is a field that is only in one of two documents, or not the same in both.
type difference struct {
	// side is who has it: kubelet, podctl or both.
	side, path string
}

func (d difference) String() string { return d.side + " " + d.path }

// row is a declared difference: where it occurs, and of which pod, or * for each.
type row struct {
	difference

	where, pod, rule string
	seen             bool
}

func (r *row) covers(where, pod string, d difference) bool {
	return r.where == where && (r.pod == "*" || r.pod == pod) && r.side == d.side && matches(r.path, d.path)
}

// matches compares a path with a pattern, in which [*] is every element and a * at the end all that is below.
func matches(pattern, path string) bool {
	for {
		before, after, wild := strings.Cut(pattern, "[*]")
		if below, all := strings.CutSuffix(before, "*"); !wild && all {
			return strings.HasPrefix(path, below)
		}
		if !wild {
			return pattern == path
		}
		rest, begins := strings.CutPrefix(path, before+"[")
		end := strings.Index(rest, "]")
		if !begins || end < 0 {
			return false
		}
		pattern, path = after, rest[end+1:]
	}
}

// compare compares what the kubelet, or the API server, says of the pods with what podctl says at the same time.
func compare(t *testing.T, n *node, k *kubelet, api *apiServer) {
	t.Helper()
	where, theirs := "standalone", k.pods(t)
	if api != nil {
		// What has no mirror pod, because it had finished, is compared with what the kubelet says.
		where, theirs = "registered", append(api.pods(t), theirs...)
	}
	rows, ours := declared(t), n.pods(t)
	for _, p := range pods() {
		kubelets, podctls := flat(find(t, theirs, p.namespace, p.name+"-"+nodeName)), flat(find(t, ours, p.namespace, p.name))
		for _, d := range differences(kubelets, podctls) {
			known := false
			for _, r := range rows {
				if r.covers(where, p.name, d) {
					r.seen, known = true, true
				}
			}
			if !known {
				t.Errorf("%s %s %s\n\tkubelet %s\n\tpodctl  %s", where, p.name, d, kubelets[d.path], podctls[d.path])
			}
		}
	}
	for _, r := range rows {
		if r.where == where && !r.seen {
			t.Errorf("there is no such difference any more: %s %s %s (%s)", where, r.pod, r.difference, r.rule)
		}
	}
}

func find(t *testing.T, list []object, namespace, name string) object {
	t.Helper()
	for _, o := range list {
		if o.at("metadata", "namespace") == namespace && o.at("metadata", "name") == name {
			return o
		}
	}
	t.Fatalf("pod %s/%s is not listed", namespace, name)
	return nil
}

func differences(kubelets, podctls map[string]string) []difference {
	var found []difference
	for _, path := range slices.Sorted(maps.Keys(kubelets)) {
		if value, both := podctls[path]; !both {
			found = append(found, difference{"kubelet", path})
		} else if value != kubelets[path] {
			found = append(found, difference{"both", path})
		}
	}
	for _, path := range slices.Sorted(maps.Keys(podctls)) {
		if _, both := kubelets[path]; !both {
			found = append(found, difference{"podctl", path})
		}
	}
	return found
}

// declared reads the rows: where, pod, side, path, and the rule after a #.
func declared(t *testing.T) []*row {
	t.Helper()
	file, err := os.Open("testdata/documents.differ.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close() //nolint:errcheck // it was only read
	var rows []*row
	for lines := bufio.NewScanner(file); lines.Scan(); {
		text, rule, _ := strings.Cut(lines.Text(), "#")
		fields := strings.Fields(text)
		if len(fields) == 0 {
			continue
		}
		if len(fields) != 4 || strings.TrimSpace(rule) == "" {
			t.Fatalf("not a row: %s", lines.Text())
		}
		for where := range strings.SplitSeq(fields[0], ",") {
			rows = append(rows, &row{difference{fields[2], fields[3]}, where, fields[1], strings.TrimSpace(rule), false})
		}
	}
	return rows
}

// flat returns every value of a document by its path. Elements of lists are found by what names them.
func flat(o object) map[string]string {
	values := map[string]string{}
	flatten(map[string]any(o), "", values)
	return values
}

func flatten(value any, path string, into map[string]string) {
	switch value := value.(type) {
	case map[string]any:
		for name, field := range value {
			flatten(field, joined(path, name), into)
		}
	case []any:
		names := elementNames(value)
		for i, element := range value {
			flatten(element, path+"["+names[i]+"]", into)
		}
	default:
		into[path] = fmt.Sprint(value)
	}
}

// joined writes names with dots or slashes, as of labels, in brackets.
func joined(path, name string) string {
	switch {
	case strings.ContainsAny(name, "./"):
		return path + "[" + name + "]"
	case path == "":
		return name
	}
	return path + "." + name
}

// elementNames are the names or types of the elements of a list, or else their numbers.
func elementNames(list []any) []string {
	for _, key := range []string{"name", "type"} {
		var names []string
		for _, element := range list {
			fields, _ := element.(map[string]any)
			if name, is := fields[key].(string); is && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
		if len(names) == len(list) {
			return names
		}
	}
	names := make([]string, len(list))
	for i := range list {
		names[i] = fmt.Sprint(i)
	}
	return names
}
