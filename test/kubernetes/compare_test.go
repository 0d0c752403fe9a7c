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

// Documents of the same pods are compared field by field. Differences must be listed in testdata/documents.differ.txt
// with their rule. A row without a difference fails the test.

// difference is a field that is only in one of two documents, or that differs.
type difference struct {
	// side is kubelet, podctl or both.
	side, path string
}

func (d difference) String() string { return d.side + " " + d.path }

// row is a listed difference: where it occurs, and the pod, or * for all pods.
type row struct {
	difference

	where, pod, rule string
	seen             bool
}

func (r *row) covers(where, pod string, d difference) bool {
	return r.where == where && (r.pod == "*" || r.pod == pod) && r.side == d.side && matches(r.path, d.path)
}

// matches compares a path with a pattern. [*] matches every element, and a * at the end matches everything below.
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

// compare compares the pods of the kubelet or the API server with those of podctl at the same time.
func compare(t *testing.T, n *node, k *kubelet, api *apiServer) {
	t.Helper()
	where, theirs := "standalone", k.pods(t)
	if api != nil {
		// Pods without a mirror pod, because they had finished, are compared with those of the kubelet.
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

// flat returns every value of a document by path. Elements of lists are identified by their names.
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

// joined adds a name to a path. Names with dots or slashes, such as labels, are in brackets.
func joined(path, name string) string {
	switch {
	case strings.ContainsAny(name, "./"):
		return path + "[" + name + "]"
	case path == "":
		return name
	}
	return path + "." + name
}

// elementNames returns the names or types of the elements of a list, or else their indices.
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
