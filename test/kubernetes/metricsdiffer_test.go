package kubernetes

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// metricDifference declares a difference: the path, who has the item (kubelet or podctl), the item with * for any text,
// and why. version is 1 or 2 if it exists only with that version of cgroups.
type metricDifference struct {
	path, side, item string
	version          int
	reason           string
}

// compareScraped compares the documents of both nodes. Each difference must be declared, and each declared one must
// exist.
func compareScraped(t *testing.T, kubelet, podctl scraped) {
	t.Helper()
	version := 1
	if two, _, err := hierarchies(); err != nil {
		t.Fatal(err)
	} else if two {
		version = 2
	}
	rows := metricDifferences()
	seen := make([]bool, len(rows))
	for _, path := range scrapedPaths() {
		theirs, ours := itemsOf(t, path, kubelet[path]), itemsOf(t, path, podctl[path])
		for _, one := range []struct {
			side       string
			has, lacks map[string]bool
		}{{"kubelet", theirs, ours}, {"podctl", ours, theirs}} {
			for _, item := range slices.Sorted(maps.Keys(one.has)) {
				if one.lacks[item] {
					continue
				}
				known := false
				for i, r := range rows {
					if r.path == path && r.side == one.side && matchesText(r.item, item) {
						seen[i], known = true, true
					}
				}
				if !known {
					t.Errorf("%s: only %s has %s", path, one.side, item)
				}
			}
		}
	}
	for i, r := range rows {
		if applies := r.version == 0 || r.version == version; applies && !seen[i] {
			t.Errorf("%s: there is no such difference any more: only %s has %s (%s)", r.path, r.side, r.item, r.reason)
		}
	}
}

// matchesText compares a text with a pattern in which * is any text.
func matchesText(pattern, text string) bool {
	parts := strings.Split(pattern, "*")
	for i, part := range parts {
		parts[i] = regexp.QuoteMeta(part)
	}
	return regexp.MustCompile("^" + strings.Join(parts, ".*") + "$").MatchString(text)
}

// itemsOf returns the items of a page to compare: names, types and labels of metrics, or the fields of a summary.
func itemsOf(t *testing.T, path, text string) map[string]bool {
	t.Helper()
	if path != "/stats/summary" {
		if path == "/metrics" {
			return seriesOf(text, func(name, _ string) string { return name })
		}
		return seriesOf(text, func(name, value string) string {
			return name + "=" + idText.ReplaceAllString(uidText.ReplaceAllString(value, "UID"), "ID")
		})
	}
	var summary map[string]any
	if err := json.Unmarshal([]byte(text), &summary); err != nil {
		t.Fatal(err)
	}
	pods, _ := summary["pods"].([]any)
	for _, pod := range pods {
		fields, _ := pod.(map[string]any)
		ref, _ := fields["podRef"].(map[string]any)
		fields["name"] = ref["name"]
	}
	items := map[string]bool{}
	for field := range flat(summary) {
		items[field] = true
	}
	return items
}

var (
	sampleLine = regexp.MustCompile(`^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)( \d+)?$`)
	labelPair  = regexp.MustCompile(`([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\.)*)"`)
	// identifiers of pods and containers differ between the two runs.
	uidText = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)
	idText  = regexp.MustCompile(`[0-9a-f]{64}`)
)

// seriesOf returns the types of metrics and the labels of each series. Buckets of a histogram count as one.
func seriesOf(text string, label func(name, value string) string) map[string]bool {
	items := map[string]bool{}
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		// A kubelet has this one only in some runs.
		if strings.Contains(line, "kubelet_metrics_provider") {
			continue
		}
		if kind, is := strings.CutPrefix(line, "# TYPE "); is {
			items["type "+kind] = true
			continue
		}
		m := sampleLine.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		var labels []string
		for _, pair := range labelPair.FindAllStringSubmatch(m[2], -1) {
			if pair[1] != "le" {
				labels = append(labels, label(pair[1], pair[2]))
			}
		}
		slices.Sort(labels)
		labels = withoutSandboxImage(labels, items)
		item := m[1] + "{" + strings.Join(labels, ",") + "}"
		if m[4] != "" {
			item += " with a time"
		}
		// Whether the first probe comes before the container listens differs from run to run.
		if !strings.Contains(item, "result=failed") {
			items[item] = true
		}
	}
	return items
}

// withoutSandboxImage removes the image of a sandbox from its labels, and notes it as an item of its own. Otherwise a
// difference would hide all metrics of sandboxes.
func withoutSandboxImage(labels []string, items map[string]bool) []string {
	at := slices.IndexFunc(labels, func(l string) bool { return strings.HasPrefix(l, "image=") && l != "image=" })
	if at < 0 || !slices.Contains(labels, "container=") {
		return labels
	}
	items["the image of sandboxes"] = true
	return slices.Concat(labels[:at], []string{"image="}, labels[at+1:])
}
