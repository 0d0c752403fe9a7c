package load

import (
	"strings"
	"testing"
)

// TestProblemsContainNoSecrets checks that problems have the position and a general reason only.
func TestProblemsContainNoSecrets(t *testing.T) {
	const head = "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\n"
	for name, c := range map[string]struct{ text, want string }{
		"an alias": {
			head + "stringData: {k: *s3cret}\n",
			"-:4:17: is not valid YAML: an alias (*name) refers to an anchor",
		},
		"an alias like another": {head + "data: {k: \"*s3cret1\"}\nstringData: {k: *s3cret}\n", "-:5:17: is not valid YAML: an alias"},
		"an alias of itself": {
			head + "stringData: &s3cret {k: *s3cret}\n",
			"-:4:25: is not valid YAML: an alias refers to a value that contains it",
		},
		"a tag":             {head + "stringData: {k: !!int s3cret}\n", "-:4:17: stringData.k: is not valid YAML: a tag"},
		"a tag of a time":   {head + "stringData: {k: !!timestamp s3cret}\n", "-:4:17: stringData.k: is not valid YAML: a tag"},
		"a handle":          {head + "stringData: {k: !s3cret!x y}\n", "is not valid YAML: found undefined tag handle"},
		"base64 by a tag":   {head + "stringData: {k: !!binary s3cret!}\n", "-:4:17: stringData.k: is not valid YAML: a tag"},
		"a list for a key":  {head + "stringData: {? [s3cret] : x}\n", "-:4:16: stringData: has a key that is not a string"},
		"a map for a key":   {head + "stringData: {? {s3cret: x} : x}\n", "-:4:16: stringData: has a key that is not a string"},
		"nothing for a key": {head + "stringData: {~: s3cret}\n", "-:4:14: stringData: has a key that is not a string"},
		"not a number":      {head + "stringData: {k: .inf}\n", "-:4:17: stringData.k: is not a number"},
		"a number": {
			head + "stringData: {k: 5311373}\n",
			"-:4:14: stringData.k: is a number, a string is expected; put it in quotes",
		},
		"a time":      {head + "stringData: {k: 2001-02-03}\n", ""},
		"a key twice": {head + "stringData: {s3cret: a, s3cret: b}\n", "-:4:25: stringData: is given twice, first in line 4"},
		"a key twice by a merge": {
			head + "stringData: {<<: {s3cret: a}, s3cret: b}\n",
			"-:4:1: is not valid YAML: a merge (<<) adds a key that already exists",
		},
		"no base64":                {head + "data: {k: s3cret}\n", "-:4:8: data.k: is not base64"},
		"a list":                   {head + "stringData: [s3cret]\n", "-:4:1: stringData: is a list"},
		"a text":                   {head + "stringData: s3cret\n", "-:4:1: stringData: is a string"},
		"a bad key":                {head + "stringData: {\"s3cret x\": a}\n", "-:4:14: stringData: is not a valid key"},
		"a field that is unknown":  {head + "s3cret: a\n", "-:4:1: unknown field"},
		"a line of a text":         {head + "stringData:\n  k: |\n    a\ns3cret+/x: y\n", "-:7:1: unknown field"},
		"a field that is misspelt": {head + "stringDate: {s3cret: a}\n", "-:4:1: unknown field; did you mean stringData?"},
		"no indentation":           {head + "stringData:\n  k: |\n  a\ns3cret\n", "is not valid YAML: "},
		"an open quote":            {head + "stringData: {k: \"s3cret}\n", "is not valid YAML: "},
		"an escape":                {head + "stringData: {k: \"s3cret\\q\"}\n", "is not valid YAML: found unknown escape character"},
		"an annotation": {
			head[:len(head)-2] + ", annotations: {kubectl.kubernetes.io/last-applied-configuration: {s3cret: a}}}\n",
			"metadata.annotations[kubectl.kubernetes.io/last-applied-configuration]: is a map",
		},
		"a bad annotation": {
			head[:len(head)-2] + ", annotations: {\"s3cret x\": a}}\n",
			"-:3:21: metadata.annotations: the value is not valid",
		},
		"a bad label": {
			head[:len(head)-2] + ", labels: {a: \"s3cret x\"}}\n",
			"-:3:21: metadata.labels: the value is not valid",
		},
		"a bad name": {
			"apiVersion: v1\nkind: Secret\nmetadata: {name: \"s3cret x\"}\n",
			"-:3:12: metadata.name: the value is not valid",
		},
		"a bad time": {
			head[:len(head)-2] + ", creationTimestamp: s3cret}\n",
			"-:3:21: metadata.creationTimestamp: the value is not a time",
		},
		"in a List": {
			"apiVersion: v1\nkind: List\nitems:\n" +
				"- {apiVersion: v1, kind: Secret, metadata: {name: a}, stringData: {s3cret: a, s3cret: b}}\n",
			"-:4:79: items[0]: is given twice",
		},
		"in an item of a List": {
			"apiVersion: v1\nkind: List\nitems:\n" +
				"- {apiVersion: v1, kind: Secret, metadata: {name: a}, stringData: {k: 5311373}}\n",
			"-:4:68: stringData.k: is a number, a string",
		},
		"a List of something else": {"apiVersion: v1\nkind: List\nitems: {s3cret: a}\n", "-:3:1: items: is a map"},
		"a kind that is hidden": {
			"apiVersion: v1\nkind: ConfigMap\nkind: Secret\nmetadata: {name: a}\nstringData: {s3cret: a, s3cret: b}\n",
			"-:5:25: stringData: is given twice",
		},
		"a kind that is missing": {"apiVersion: v1\nstringData: {s3cret: a, s3cret: b}\n", "-:2:25: stringData: is given twice"},
		"a kind by a merge": {
			"<<: {kind: Secret}\napiVersion: v1\nmetadata: {name: a}\nstringData: {s3cret: 5311373}\n",
			"stringData",
		},
		"not yet a Secret": {"stringData: {k: *s3cret}\nkind: Secret\n", "-:1:17: is not valid YAML: an alias"},
	} {
		t.Run(name, func(t *testing.T) {
			m := parsed(t, c.text)
			reported := problemsOf(m)
			for _, n := range m.NoEffect {
				reported += "\n" + n.String()
			}
			if c.want != "" && !strings.Contains(reported, c.want) {
				t.Errorf("want %q:\n%s", c.want, reported)
			}
			for _, p := range m.Problems {
				reported += p.Path + p.Detail
			}
			if name == "a kind by a merge" {
				reported = strings.ReplaceAll(reported, "stringData.s3cret", "")
			}
			if strings.Contains(reported, "s3cret") || strings.Contains(reported, "5311373") {
				t.Errorf("the value is in the report:\n%s", reported)
			}
		})
	}
}

// TestQuotedValuesStayOnOneLine checks that a quoted value of a Pod stays on one line, is not interpreted by a
// terminal, and is not too long.
func TestQuotedValuesStayOnOneLine(t *testing.T) {
	evil := `x\ndefault/web is valid\r\e[2J\x9b2J\u202e\x7f`
	for _, text := range []string{
		"    imagePullPolicy: \"" + evil + "\"\n",
		"    resources: {limits: {cpu: \"" + evil + "\"}}\n",
		"    resources: {limits: {\"" + evil + "\": 1}}\n",
		"    env: [{name: A, valueFrom: {fieldRef: {fieldPath: \"" + evil + "\"}}}]\n",
		"    env: [{name: \"" + evil + "\", value: \"" + strings.Repeat("x", 200_000) + "\"}]\n",
		"    envFrom: [{configMapRef: {name: a}, prefix: \"" + evil + "\"}]\n",
		"    \"" + evil + "\": 1\n",
		"    volumeMounts: [{name: \"" + evil + "\", mountPath: /x}]\n",
		"    imagePullPolicy: \"" + strings.Repeat("x", 200_000) + "\"\n",
		"    resources: {limits: {cpu: \"" + strings.Repeat("x", 200_000) + "\"}}\n",
		"  volumes: [{name: v, persistentVolumeClaim: {claimName: \"" + evil + "\"}}]\n",
		"---\napiVersion: \"" + evil + "\"\nkind: \"" + evil + "\"\n",
	} {
		m := parsed(t, minimal+text)
		if m.Err() == nil {
			t.Errorf("%.80s: accepted", text)
		}
		for _, p := range m.Problems {
			if line := p.String(); strings.ContainsAny(line, "\n\r\x1b\u009b\u202e\x7f") || len(line) > 4000 {
				t.Errorf("%.80s: %.300q", text, line)
			}
		}
	}
}
