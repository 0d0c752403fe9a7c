package commands

import (
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/podctl/podctl/commands/commandstest"
	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/podspec/input"
	"github.com/podctl/podctl/podspec/load"
)

// otherKinds are kinds of Kubernetes that podspec.Kinds does not have, with their apiVersions.
func otherKinds() map[string]string {
	return map[string]string{
		"PersistentVolume": "v1", "ServiceAccount": "v1", "Namespace": "v1", "Node": "v1", "Event": "v1",
		"Endpoints": "v1", "PodTemplate": "v1", "ResourceQuota": "v1", "LimitRange": "v1",
		"ControllerRevision": "apps/v1", "HorizontalPodAutoscaler": "autoscaling/v2",
		"Ingress": "networking.k8s.io/v1", "NetworkPolicy": "networking.k8s.io/v1",
		"EndpointSlice": "discovery.k8s.io/v1", "PodDisruptionBudget": "policy/v1",
		"StorageClass": "storage.k8s.io/v1", "RuntimeClass": "node.k8s.io/v1",
		"PriorityClass": "scheduling.k8s.io/v1", "Lease": "coordination.k8s.io/v1",
		"Role": "rbac.authorization.k8s.io/v1", "RoleBinding": "rbac.authorization.k8s.io/v1",
		"ClusterRole": "rbac.authorization.k8s.io/v1", "CustomResourceDefinition": "apiextensions.k8s.io/v1",
	}
}

// acceptedKinds returns the kinds that podctl knows or otherKinds has, and whether the loader accepts them. A
// ReplicationController is accepted too, as a ReplicaSet.
func acceptedKinds(t *testing.T) map[string]bool {
	t.Helper()
	versions := otherKinds()
	for _, kind := range podspec.Kinds() {
		versions[kind.Name] = kind.APIVersion
	}
	accepted := map[string]bool{}
	for kind, version := range versions {
		// The loader accepts PersistentVolumes only on host paths. Other kinds may be invalid.
		spec := "metadata: {name: x}, spec: {hostPath: {path: /x}}"
		manifest := "{apiVersion: " + version + ", kind: " + kind + ", " + spec + "}"
		stdin := input.Reader{Stdin: strings.NewReader(manifest)}
		loader := load.Loader{Reader: stdin, Store: true, Workloads: true}
		m, err := loader.Load(t.Context(), "-")
		if err != nil {
			t.Fatal(err)
		}
		refused := m.Err() != nil && strings.Contains(m.Err().Error(), "podctl does not run")
		accepted[kind] = !refused && len(m.Skipped) == 0
	}
	return accepted
}

// names reports whether a text names a kind, in the singular or the plural.
func names(text, kind string) bool {
	word := strings.TrimSuffix(kind, "y") + "(y|ies|s|es)?"
	if kind == podspec.KindClaim {
		word = "(" + word + "|[Cc]laims?)"
	}
	return regexp.MustCompile(`\b` + word + `\b`).MatchString(text)
}

// TestPagesNameKinds checks the lists of the kinds that podctl accepts. A complete list has each of them, and no text
// names another one.
func TestPagesNameKinds(t *testing.T) {
	accepted := acceptedKinds(t)
	apply, _, err := New(&Env{Getenv: func(string) string { return "" }}).Find([]string{"apply"})
	if err != nil {
		t.Fatal(err)
	}
	complete := map[string]string{"the help of apply": section(t, apply.Long, "Manifests can contain ", "\n\n")}
	for place, marks := range map[string][2]string{
		"../README.md":          {"## What it runs\n", "\n\n`podctl apply`"},
		"../CHANGELOG.md":       {"Manifests:\n", "."},
		"../docs/comparison.md": {"| input | ", " | "},
		"../docs/agent.md":      {"A source accepts what `podctl apply` accepts: ", "."},
		"../docs/workloads.md":  {"objects that create pods: ", "They are"},
	} {
		complete[place] = section(t, contentsOf(t, place), marks[0], marks[1])
	}
	for place, list := range complete {
		for kind, want := range accepted {
			switch workload := podspec.KindNamed(kind).Workload; {
			case place == "../docs/workloads.md":
				want = workload
			case strings.Contains(list, " workloads,"):
				want = want && !workload
			}
			if names(list, kind) != want {
				t.Errorf("%s: the list should name %s: %t\n%s", place, kind, want, list)
			}
		}
	}
	claims := regexp.MustCompile(`(?s)podctl\s(?:also\s)?(?:accepts|applies|runs|stores)\b.*?(?:\.\s|\n\n|\|)`)
	for _, p := range readPages(t) {
		for _, found := range claims.FindAllStringIndex(p.prose, -1) {
			for kind, is := range accepted {
				if text := p.prose[found[0]:found[1]]; !is && names(text, kind) {
					t.Errorf("%s: podctl does not accept a %s: %s", p.at(p.prose, found[0]), kind, text)
				}
			}
		}
	}
}

// section returns the part of a text between two marks.
func section(t *testing.T, text, begin, end string) string {
	t.Helper()
	_, text, _ = strings.Cut(text, begin)
	text, _, found := strings.Cut(text, end)
	if !found || text == "" {
		t.Fatalf("no text between %q and %q", begin, end)
	}
	return text
}

// TestPagesNameExitCodes checks that the exit codes in the documents are in the help of the commands. The command is
// the last one before the code in its paragraph.
func TestPagesNameExitCodes(t *testing.T) {
	root, seen := New(&Env{Getenv: func(string) string { return "" }}), 0
	check := func(at, before, code string) {
		command := lastCommand(root, before)
		n, err := strconv.Atoi(code)
		if command == "" || err != nil {
			return
		}
		seen++
		if listed := codesOf(t, strings.Fields(command)); !slices.Contains(listed, n) {
			t.Errorf("%s: %s exits with %v, not with %d", at, command, listed, n)
		}
	}
	codes := regexp.MustCompile(`(?:exits?\s+with|exit\s+code(?:\s+is)?|, with) (\d+)\b`)
	for _, p := range readPages(t) {
		p.visitLines(func(at, line string) {
			for _, words := range calls("podctl", line) {
				for _, found := range codes.FindAllStringSubmatch(line, -1) {
					check(at, "`"+strings.Join(words, " ")+"`", found[1])
				}
			}
		})
		for _, found := range codes.FindAllStringSubmatchIndex(p.prose, -1) {
			before := p.prose[:found[0]]
			begin := 0
			for _, mark := range []string{"\n\n", "\n| ", "\n* "} {
				begin = max(begin, strings.LastIndex(before, mark))
			}
			check(p.at(p.prose, found[0]), before[begin:], p.prose[found[2]:found[3]])
		}
	}
	if seen < 12 {
		t.Errorf("only %d exit codes were checked", seen)
	}
}

// lastCommand returns the last command in backquotes in a text, without its arguments; empty if there is none.
func lastCommand(root *cobra.Command, text string) string {
	for _, code := range slices.Backward(span.FindAllString(text, -1)) {
		words := strings.Fields(strings.TrimPrefix(unquote(code), "podctl "))
		if cmd, _, err := root.Find(words); err == nil && cmd != root {
			return strings.TrimPrefix(cmd.CommandPath(), "podctl ")
		}
	}
	return ""
}

// TestPagesNameVariables checks that the environment variables in the documents exist, and that the documents describe
// each one that podctl, make or a test reads. Tests start processes with variables that begin with PODCTL_TEST_ or
// PODCTL_KUBERNETES_.
func TestPagesNameVariables(t *testing.T) {
	variable := regexp.MustCompile(`\bPODCTL_[A-Z]\w*`)
	settings := variablesRead(t)
	read := map[string]bool{}
	for _, files := range []string{"../Makefile", "e2e/*.go", "../runtime/agent/*_test.go", "../hack/*/*.sh"} {
		for _, name := range variable.FindAllString(contentsOf(t, files), -1) {
			read[name] = true
		}
	}
	for _, name := range variable.FindAllString(sourceText(t), -1) {
		read[name] = true
	}
	documented := map[string]bool{}
	for _, p := range readPages(t) {
		for _, found := range variable.FindAllStringIndex(p.text, -1) {
			name := p.text[found[0]:found[1]]
			documented[name] = true
			if !slices.Contains(settings, name) && !read[name] {
				t.Errorf("%s: podctl, make and the tests do not read %s", p.at(p.text, found[0]), name)
			}
		}
	}
	for name := range read {
		internal := strings.HasPrefix(name, "PODCTL_TEST_") || strings.HasPrefix(name, "PODCTL_KUBERNETES_")
		if !internal && !documented[name] && !slices.Contains(settings, name) {
			t.Errorf("no document describes %s", name)
		}
	}
}

// variablesRead returns the variables of settings. docs/configuration.md describes how their names are formed, and
// other tests check that it describes each setting.
func variablesRead(t *testing.T) (read []string) {
	t.Helper()
	env := commandstest.Env("", io.Discard, io.Discard, time.Now)
	env.Getenv = func(name string) string {
		read = append(read, name)
		return ""
	}
	if code := Main(t.Context(), env, []string{"version", "--client"}); code != 0 || len(read) < 10 {
		t.Fatalf("exit code %d, %d variables", code, len(read))
	}
	return read
}
