//go:build kustomize

package kustomize

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/podctl/podctl/podspec/document"
)

const pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec: {containers: [{name: app, image: demo}]}\n"

// tree writes files, by their paths, below a new directory.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestBuild: bases, patches, generators and components come together as kustomize does it, each object by itself.
func TestBuild(t *testing.T) {
	dir := tree(t, map[string]string{
		"base/kustomization.yaml": "resources: [pod.yaml]\nconfigMapGenerator: [{name: settings, files: [app.conf], envs: [app.env]}]\nsecretGenerator: [{name: key, literals: [a=hunter2]}]\n",
		"base/pod.yaml":           pod, "base/app.conf": "x: 1\n", "base/app.env": "LEVEL=info\n",
		"part/kustomization.yaml":    "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\ncommonAnnotations: {part: \"yes\"}\n",
		"overlay/kustomization.yaml": "bases: [../base]\ncomponents: [../part]\nnamespace: shop\nnamePrefix: my-\npatches:\n- target: {kind: Pod}\n  patch: |-\n    - {op: replace, path: /spec/containers/0/image, value: 'demo:2'}\n",
	})
	sources, err := Build(filepath.Join(dir, "overlay"))
	if err != nil || len(sources) != 3 {
		t.Fatalf("%d sources, %v", len(sources), err)
	}
	all := ""
	for _, s := range sources {
		if !s.Made || !strings.HasPrefix(s.Name, "kustomization "+dir+"/overlay: ") {
			t.Errorf("source %+v", s)
		}
		all += s.Name + "\n" + string(s.Text)
	}
	for _, want := range []string{": Pod shop/my-web", "image: demo:2", "part: \"yes\"", ": ConfigMap shop/my-settings-", "LEVEL: info", "x: 1", ": Secret shop/my-key-"} {
		if !strings.Contains(all, want) {
			t.Errorf("lacks %q:\n%s", want, all)
		}
	}
}

// attack is a kustomization that must not be built.
type attack struct {
	files map[string]string
	want  string
}

// TestHostile: nothing is fetched, run, or read outside of the root, wherever a kustomization names it.
func TestHostile(t *testing.T) {
	var asked atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		_, _ = w.Write([]byte(pod))
	}))
	defer server.Close()
	ran := filepath.Join(t.TempDir(), "ran")
	programs := tree(t, nil)
	for _, name := range []string{"git", "helm", "sh"} {
		if err := os.WriteFile(filepath.Join(programs, name), []byte("#!/bin/sh\necho > "+ran+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", programs)
	secret := tree(t, map[string]string{"secret.yaml": pod, "plain": "hunter2", "base/kustomization.yaml": "resources: [pod.yaml]\n", "base/pod.yaml": pod})
	for name, a := range hostile(server.URL, secret) {
		dir := tree(t, a.files)
		for from, to := range map[string]string{"link.yaml": secret + "/secret.yaml", "link": secret + "/base", "sub/kustomization.yaml": secret + "/base/kustomization.yaml"} {
			if err := errors.Join(os.MkdirAll(filepath.Join(dir, "sub"), 0o700), os.Symlink(to, filepath.Join(dir, from))); err != nil && !os.IsExist(err) {
				t.Fatal(err)
			}
		}
		sources, err := Build(dir)
		if err == nil || len(sources) > 0 || !strings.Contains(err.Error(), a.want) {
			t.Errorf("%s: %d sources, error %v, want %q", name, len(sources), err, a.want)
		}
		if err != nil && strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: tells a secret: %v", name, err)
		}
	}
	if _, err := os.Stat(ran); asked.Load() > 0 || err == nil {
		t.Errorf("%d requests, a program was run: %v", asked.Load(), err == nil)
	}
}

// hostile are attacks, by what they try.
func hostile(server, outside string) map[string]attack {
	const elsewhere = "is on another machine"
	only := func(text, want string) attack {
		return attack{map[string]string{"kustomization.yaml": text, "pod.yaml": pod}, want}
	}
	attacks := map[string]attack{
		"a base of a base": {map[string]string{"kustomization.yaml": "resources: [b]\n", "b/kustomization.yaml": "\n\nresources:\n- " + server + "/x.yaml\n"}, "b/kustomization.yaml:4:3: resources: "},
		"upper case":       only("RESOURCES: ['HTTPS://example.com/x']\n", elsewhere),
		"password":         only("resources: ['https://me:hunter2@example.com/x']\n", elsewhere),
		"a clone beside a directory of that name": {map[string]string{
			"kustomization.yaml": "resources: [github.com/a/b]\n", "github.com/a/b/kustomization.yaml": "resources: [pod.yaml]\n", "github.com/a/b/pod.yaml": pod,
		}, elsewhere},
		"generator program": only("generators: [pod.yaml]\n", "runs no generators"), "transformer": only("transformers: [pod.yaml]\n", "runs no generators"), "validator": only("validators: [pod.yaml]\n", "runs no generators"),
		"helm": only("helmCharts: [{name: x, repo: "+server+"}]\n", "does not run helm"), "older helm": only("helmChartInflationGenerator: [{chartName: x}]\n", "does not run helm"),
		"a file above":            only("configMapGenerator: [{name: x, files: [../../../../../../../../etc/hostname]}]\n", "is not in or below"),
		"an absolute file":        only("configMapGenerator: [{name: x, files: [k="+outside+"/plain]}]\n", "is not in or below"),
		"an absolute base":        only("resources: ["+outside+"/base]\n", "cannot be absolute"),
		"a link to a file":        only("resources: [link.yaml]\n", "symbolic link"),
		"a link to a base":        only("resources: [link]\n", "symbolic link"),
		"a link as a generator":   only("secretGenerator: [{name: x, files: [link.yaml]}]\n", "symbolic link"),
		"a linked kustomization":  only("resources: [sub]\n", "symbolic link"),
		"a literal without key":   only("secretGenerator: [{name: x, literals: [hunter2]}]\n", "not KEY=VALUE"),
		"a circle":                {map[string]string{"kustomization.yaml": "resources: [a]\n", "a/kustomization.yaml": "resources: [../]\n"}, "cycle"},
		"an unknown field":        only("resource: [hunter2]\n", "is no kustomization"),
		"two kustomizations":      {map[string]string{"kustomization.yaml": "resources: [pod.yaml]\n", "Kustomization": "resources: [pod.yaml]\n", "pod.yaml": pod}, "multiple"},
		"nothing":                 only("", "kustomization.yaml"),
		"a bomb":                  {map[string]string{"kustomization.yaml": "resources: [pod.yaml]\n", "pod.yaml": bomb()}, "once its aliases are replaced"},
		"a bomb as kustomization": only(bomb(), "once its aliases are replaced"),
		"a bomb in a patch":       only("resources: [pod.yaml]\npatches:\n- patch: |\n    "+strings.ReplaceAll(bomb(), "\n", "\n    ")+"\n", "once its aliases are replaced"),
		"a secret in a message":   {map[string]string{"kustomization.yaml": "resources: [s.yaml]\n", "s.yaml": "kind: Secret\nstringData: {a: hunter2\n"}, "what it says is left out"},
	}
	for field, entry := range map[string]string{
		"resources": "%s", "bases": "%s", "components": "%s", "crds": "%s", "configurations": "%s", "patchesStrategicMerge": "%s",
		"patches": "{path: '%s'}", "patchesJson6902": "{path: '%s', target: {kind: Pod, name: web}}", "replacements": "{path: '%s'}",
		"configMapGenerator": "{name: x, files: ['k=%s']}", "secretGenerator": "{name: x, envs: ['%s']}",
	} {
		attacks[field+" by HTTP"] = only(fmt.Sprintf("resources: [pod.yaml]\n%s: ["+entry+"]\n", field, server+"/x.yaml"), elsewhere)
		if field == "resources" {
			attacks[field+" by HTTP"] = only("resources: ["+server+"/x.yaml]\n", elsewhere)
		}
	}
	attacks["openapi"] = only("openapi: {path: '"+server+"'}\n", elsewhere)
	for _, repo := range []string{"https://github.com/a/b?ref=v1", "git@github.com:a/b.git", "GitHub.com/a/b", "ssh://git@example.com/a/b", "git::https://example.com/a/b", "file://" + outside, "me@example.com:a/b", "http:" + server} {
		attacks["a clone of "+repo] = only("resources: ['"+repo+"']\n", elsewhere)
	}
	return attacks
}

// bomb is YAML whose aliases stand for a billion values.
func bomb() string {
	text := "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n"
	for i := 1; i < 9; i++ {
		text += fmt.Sprintf("a%d: &a%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d, ", i-1), 10), ", "))
	}
	return text
}

// TestAllProblemsAtOnce: the faults of all kustomizations that one leads to are told together, each with its place.
func TestAllProblemsAtOnce(t *testing.T) {
	dir := tree(t, map[string]string{
		"kustomization.yaml":   "resources:\n- a\n- b\n",
		"a/kustomization.yaml": "resources:\n- pod.yaml\n- https://example.com/x\nhelmCharts: [{name: x}]\n",
		"b/kustomization.yaml": "generators: [x.yaml]\n",
	})
	_, err := Build(dir)
	refused := (*RefusedError)(nil)
	if !errors.As(err, &refused) || len(refused.Problems) != 3 {
		t.Fatalf("%v", err)
	}
	for i, want := range []string{"a/kustomization.yaml:3:3: resources: ", "a/kustomization.yaml:4:1: helmCharts: ", "b/kustomization.yaml:1:1: generators: "} {
		if p := refused.Problems[i]; !strings.HasPrefix(p.String(), filepath.Join(dir, want)) || p.Class != document.ClassUnsupported {
			t.Errorf("%s, want %s", p, want)
		}
	}
}

// TestBounds: what is read of a kustomization is bounded, and what is no regular file is not begun.
func TestBounds(t *testing.T) {
	many := map[string]string{}
	for i := range maxKustomizations + 5 {
		many[fmt.Sprintf("d%d/kustomization.yaml", i)] = fmt.Sprintf("resources: [../d%d]\n", i+1)
	}
	if _, err := Build(filepath.Join(tree(t, many), "d0")); err == nil || !strings.Contains(err.Error(), "more than 100 kustomizations") {
		t.Errorf("many: %v", err)
	}
	dir := tree(t, map[string]string{"kustomization.yaml": "resources: [pipe]\n"})
	if err := unix.Mkfifo(filepath.Join(dir, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Build(dir); err == nil || !strings.Contains(err.Error(), "no regular file") {
		t.Errorf("a pipe: %v", err)
	}
	dir = tree(t, map[string]string{"kustomization.yaml": "configMapGenerator: [{name: x, files: [large]}]\n"})
	if err := errors.Join(os.WriteFile(filepath.Join(dir, "large"), nil, 0o600), os.Truncate(filepath.Join(dir, "large"), 1<<30)); err != nil {
		t.Fatal(err)
	}
	if _, err := Build(dir); err == nil || !strings.Contains(err.Error(), "larger than") {
		t.Errorf("a large file: %v", err)
	}
	// Two bases that are each used twice, one above the other, double what is made at each level.
	deep := map[string]string{"l0/kustomization.yaml": "resources: [pod.yaml]\n", "l0/pod.yaml": pod}
	for i := 1; i < 14; i++ {
		deep[fmt.Sprintf("l%d/kustomization.yaml", i)] = fmt.Sprintf("resources: [../l%da, ../l%db]\n", i, i)
		deep[fmt.Sprintf("l%da/kustomization.yaml", i)] = fmt.Sprintf("namePrefix: a-\nresources: [../l%d]\n", i-1)
		deep[fmt.Sprintf("l%db/kustomization.yaml", i)] = fmt.Sprintf("namePrefix: b-\nresources: [../l%d]\n", i-1)
	}
	if _, err := Build(filepath.Join(tree(t, deep), "l13")); err == nil || !strings.Contains(err.Error(), "more than 2000 files") {
		t.Errorf("doubled: %v", err)
	}
	for _, dir := range []string{"https://example.com/x", "-", filepath.Join(dir, "none"), filepath.Join(dir, "large")} {
		if _, err := Build(dir); err == nil {
			t.Errorf("%s was built", dir)
		}
	}
}
