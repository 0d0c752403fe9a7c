package load

import (
	"slices"
	"strings"
	"testing"

	"github.com/podctl/podctl/podspec/document"
	"github.com/podctl/podctl/podspec/input"
)

// hooked returns a pod with a hook of helm.
func hooked(hook string) string {
	return "apiVersion: v1\nkind: Pod\nmetadata:\n  name: web\n  annotations: {helm.sh/hook: '" + hook +
		"'}\nspec: {containers: [{name: app, image: i}]}\n"
}

// TestHooks checks that hooks for other times are skipped, that hooks of an installation are applied, and that both are
// reported.
func TestHooks(t *testing.T) {
	for hook, taken := range map[string]bool{
		"test":                       false,
		"test-success":               false,
		"pre-delete,post-delete":     false,
		"pre-install":                true,
		"pre-upgrade, post-rollback": true,
		"":                           true,
	} {
		for _, text := range []string{
			hooked(hook),
			"apiVersion: v1\nkind: List\nitems:\n- " +
				strings.ReplaceAll(strings.TrimSpace(hooked(hook)), "\n", "\n  ") + "\n",
		} {
			m := withWorkloads(t, text)
			if m.Err() != nil || (len(m.Pods) == 1) != taken || (len(m.NoEffect)+len(m.Skipped) == 1) != (hook != "") {
				t.Errorf("%q: %d pods, %v, %v", hook, len(m.Pods), m.Skipped, m.Err())
			}
			left := slices.ContainsFunc(m.Skipped, func(s document.Skipped) bool {
				return strings.HasPrefix(s.String(), "skipped: Pod/web (it is a hook, ") && s.Line > 1
			})
			if left == taken {
				t.Errorf("%q: %v", hook, m.Skipped)
			}
		}
	}
	// A command for one pod accepts any hook.
	if m := Parse(input.Source{Name: "-", Text: []byte(hooked("test"))}); len(m.Pods) != 1 {
		t.Errorf("hooks without Loader.Workloads: %v", m.Err())
	}
}

// TestKustomizationAsManifest checks the advice for a kustomization that is used as a manifest.
func TestKustomizationAsManifest(t *testing.T) {
	for name, text := range map[string]string{
		"-":                       "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n",
		"/srv/kustomization.yaml": "resources: [a.yaml]\n",
		"/srv/Kustomization":      "resources: []\n",
	} {
		if m := Parse(input.Source{Name: name, Text: []byte(text)}); m.Err() == nil ||
			!strings.Contains(m.Err().Error(), "kustomize build ") {
			t.Errorf("%s: %v", name, m.Err())
		}
	}
	if m := Parse(input.Source{Name: "/srv/pod.yaml", Text: []byte("kind: Pod\n")}); strings.Contains(m.Err().Error(), "kustomization") {
		t.Errorf("%v", m.Err())
	}
}
