//go:build kustomize

package lifecycle_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/podctl/podctl/commands/exit"
)

// kustomization writes files below a directory of the lab.
func kustomization(l *lab, files map[string]string) string {
	for name, text := range files {
		path := l.Path(filepath.Join("k", name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			l.T().Fatal(err)
		}
	}
	return l.Path("k")
}

// TestKustomize: a kustomization is planned, validated, applied, compared and deleted as its output is.
func TestKustomize(t *testing.T) {
	l := newLab(t)
	dir := kustomization(l, map[string]string{"kustomization.yaml": "resources: [web.yaml]\nnamespace: shop\nimages: [{name: i, newTag: '2'}]\n", "web.yaml": deployment(1, "i:1", "")})
	if stdout, _ := l.Must("validate", "-k", dir); !strings.Contains(stdout, "deployment shop/web is valid (kustomization "+dir+": Deployment shop/web)") {
		t.Errorf("validate: %s", stdout)
	}
	if stdout, _ := l.Must("plan", "-k", dir); !strings.Contains(stdout, "Deployment shop/web · would be created") {
		t.Errorf("plan: %s", stdout)
	}
	l.Must("apply", "--wait", "-k", dir)
	if stdout, _ := l.Must("get", "-n", "shop", "-o", "yaml"); !strings.Contains(stdout, "image: i:2") {
		t.Errorf("get: %s", stdout)
	}
	l.Must("diff", "-k", dir)
	if stdout, stderr := l.Must("apply", "--all", "-A"); strings.Contains(stdout+stderr, "source:") {
		t.Errorf("apply --all: %s%s", stdout, stderr)
	}
	l.Must("delete", "-k", dir)
	if stdout, _ := l.Must("get", "-A", "-o", "name"); stdout != "" {
		t.Errorf("after delete: %s", stdout)
	}
}

// TestKustomizeProblems: problems name the kustomization and the object, and nothing is changed.
func TestKustomizeProblems(t *testing.T) {
	l := newLab(t)
	pod := func(name, rest string) string {
		return "apiVersion: v1\nkind: Pod\nmetadata: {name: " + name + "}\nspec: {" + rest + "containers: [{name: a, image: 'i:1'}]}\n---\n"
	}
	dir := kustomization(l, map[string]string{"kustomization.yaml": "resources: [pods.yaml]\n", "pods.yaml": pod("a", "") + pod("b", "nodename: x, ") + pod("c", "restartPolicy: Sometimes, ")})
	code, stdout, stderr := l.Call("apply", "-k", dir)
	for _, want := range []string{"refused: 2 problems", "  kustomization " + dir + ": Pod b: spec.nodename: unknown field", "  kustomization " + dir + ": Pod c: spec.restartPolicy: "} {
		if code != exit.Refused || !strings.Contains(stderr, want) {
			t.Errorf("%d, want %q:\n%s%s", code, want, stdout, stderr)
		}
	}
	if stdout, _ := l.Must("get", "-o", "name"); stdout != "" {
		t.Errorf("applied: %s", stdout)
	}
	dir = kustomization(l, map[string]string{"kustomization.yaml": "resources: ['https://example.com/x']\n"})
	if code, _, stderr := l.Call("plan", "-k", dir); code != exit.Refused || !strings.Contains(stderr, "kustomization.yaml:1:13: resources: ") {
		t.Errorf("remote: %d %s", code, stderr)
	}
	for _, args := range [][]string{{"apply", "-k", dir, "-f", "x.yaml"}, {"plan", "-k", dir, "web"}, {"apply", "-k", dir, "-R"}, {"delete", "-k", dir, "--all"}, {"validate", "-k", dir, "x.yaml"}} {
		if code, _, stderr := l.Call(args...); code != exit.Error || !strings.Contains(stderr, "-k takes one kustomization") {
			t.Errorf("%v: %d %s", args, code, stderr)
		}
	}
}
