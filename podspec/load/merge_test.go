package load

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const bare = "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec:\n"

// findings returns the problems and notes of a manifest with their lines.
func findings(t *testing.T, text string) string {
	t.Helper()
	m := parsed(t, text)
	var reported []string
	for _, p := range m.Problems {
		reported = append(reported, fmt.Sprintf("%d %s: %s", p.Line, p.Path, p.Detail))
	}
	for _, n := range m.NoEffect {
		reported = append(reported, fmt.Sprintf("%d note %s: %s", n.Line, n.Path, n.Detail))
	}
	return strings.Join(reported, "\n")
}

// TestMergesAndAliasesAreExpanded checks that findings about a field do not depend on merges and aliases, and have
// the line in which the field is written.
func TestMergesAndAliasesAreExpanded(t *testing.T) {
	const app = "  containers:\n  - name: app\n    image: a:1\n"
	cases := map[string]struct{ brought, written string }{
		"a merge into the pod": {
			bare + app + "  <<: {schedulerName: zz,\n    resourceClaims: [{name: a, resourceClaimName: b}]}\n",
			bare + app + "  schedulerName: zz\n  resourceClaims: [{name: a, resourceClaimName: b}]\n",
		},
		"a merge into a container": {
			bare + app + "    <<: {securityContext: {windowsOptions: {hostProcess: true}}}\n",
			bare + app + "    securityContext: {windowsOptions: {hostProcess: true}}\n",
		},
		"a merge into the metadata": {
			strings.Replace(bare, "{name: web}", "{name: web, <<: {labels: {a: b}}}", 1) + app,
			strings.Replace(bare, "{name: web}", "{name: web, labels: {a: b}}", 1) + app,
		},
		"the kind of a volume": {
			bare + app + "  volumes: [{name: w, <<: {emptyDir: {}}}]\n",
			bare + app + "  volumes: [{name: w, emptyDir: {}}]\n",
		},
		"a kind of volume that is refused": {
			bare + app + "  volumes: [{name: w, <<: {nfs: {server: a, path: /b}}}]\n",
			bare + app + "  volumes: [{name: w, nfs: {server: a, path: /b}}]\n",
		},
		"a merge of merges": {
			bare + app + "  <<: [{<<: {schedulerName: zz}},\n    {nodeName: b}]\n",
			bare + app + "  schedulerName: zz\n  nodeName: b\n",
		},
		"a merge of an alias": {
			bare + app +
				"    resources: {limits: &l {cpu: 1}}\n    <<: &m {stdin: maybe}\n" +
				"  - {name: b, image: a:1, resources: {limits: {<<: *l}}}\n",
			bare + app + "    resources: {limits: {cpu: 1}}\n    stdin: maybe\n  - {name: b, image: a:1, resources: {limits: {cpu: 1}}}\n",
		},
		"an alias for a field's name": {
			bare + app + "  nodeSelector: {a: &k schedulerName}\n  *k : zz\n",
			bare + app + "  nodeSelector: {a: schedulerName}\n  schedulerName: zz\n",
		},
		"an alias for a key, named as another key": {
			bare + app + "  nodeSelector: {a: &b x, *b : y, b: z}\n",
			bare + app + "  nodeSelector: {a: x, x: y, b: z}\n",
		},
		"an unknown field in a merge": {
			bare + app + "    <<: {comand: [a]}\n",
			bare + app + "    comand: [a]\n",
		},
		"a token of a cluster's": {
			bare + app + "  volumes: [{<<: {name: kube-api-access-x}, projected: {sources: [{serviceAccountToken: {path: a}}]}}]\n",
			bare + app + "  volumes: [{name: kube-api-access-x, projected: {sources: [{serviceAccountToken: {path: a}}]}}]\n",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(findings(t, c.written), findings(t, c.brought)); diff != "" {
				t.Errorf("(-written out +merged)\n%s", diff)
			}
		})
	}
}

// TestMergeKeySyntax checks that a quoted "<<" is a name, and that a merge must not repeat a key.
func TestMergeKeySyntax(t *testing.T) {
	for text, want := range map[string]string{
		`{"<<": {schedulerName: zz}}`:                            "spec.<<: unknown field",
		`{<<: {schedulerName: zz}, schedulerName: yy}`:           `key "schedulerName" already set in map`,
		`{<<: [{schedulerName: zz}, {schedulerName: zz}]}`:       `key "schedulerName" already set in map`,
		`{<<: {schedulerName: zz}, <<: {nodeName: a}}`:           "spec.<<: is given twice",
		`{<<: schedulerName}`:                                    "map merge requires map",
		`{containers: [{"<<": {securityContext: {}}, name: a}]}`: "spec.containers[0].<<: unknown field",
	} {
		if got := findings(t, strings.TrimSuffix(bare, "\n")+" "+text+"\n"); !strings.Contains(got, want) {
			t.Errorf("%s: %s", text, got)
		}
	}
}
