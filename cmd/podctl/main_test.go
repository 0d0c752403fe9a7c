package main

import (
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// forbidden are packages whose initialisation or weight a command cannot afford, with
// what comes below them: clients of an API server, and the inside of the kubelet.
func forbidden() []string {
	return []string{
		"k8s.io/client-go/kubernetes", "k8s.io/client-go/informers", "k8s.io/cli-runtime",
		"k8s.io/apiserver/pkg/server", "k8s.io/kubectl", "k8s.io/kubernetes/pkg/kubelet/container",
		"k8s.io/kubernetes/pkg/kubelet/kuberuntime", "k8s.io/kubernetes/pkg/kubelet/cm",
		"k8s.io/kubernetes/pkg/kubelet/prober", "k8s.io/kubernetes/pkg/volume/util",
		"github.com/google/go-cmp", "html/template", "testing",
	}
}

// TestForbiddenPackages: what is linked into podctl is initialised by every call.
func TestForbiddenPackages(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "-tags", "grpcnotrace", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	linked := strings.Fields(string(out))
	if !slices.Contains(linked, "k8s.io/cri-api/pkg/apis/runtime/v1") {
		t.Fatal("the list of packages is not podctl's")
	}
	for _, bad := range forbidden() {
		for _, path := range linked {
			if path == bad || strings.HasPrefix(path, bad+"/") {
				t.Errorf("%s is linked", path)
			}
		}
	}
}

// TestEarlyPackagesAreEarly: what prepares the initialisation of a library comes before
// it. Go's order depends on what each package imports.
func TestEarlyPackagesAreEarly(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), build(t), "version", "--client")
	cmd.Env = append(os.Environ(), "GODEBUG=inittrace=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	const own = "github.com/podctl/podctl/cmd/podctl/early"
	for early, late := range map[string]string{
		own + "/memory":   "github.com/distribution/reference",
		own + "/podtypes": "k8s.io/kubernetes/pkg/features",
		own:               "k8s.io/kubernetes/pkg/features",
	} {
		first, then := strings.Index(string(out), "init "+early+" @"), strings.Index(string(out), "init "+late+" @")
		if first < 0 || then < 0 || first > then {
			t.Errorf("%s is not initialised before %s", early, late)
		}
	}
}

// TestVariablesAreWhereTheyAreLookedFor: package memory asks for as many pages as the
// variables take, from one of its own on, which the linker has to put first.
func TestVariablesAreWhereTheyAreLookedFor(t *testing.T) {
	f, err := elf.Open(build(t))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	symbols, err := f.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(symbols, func(s elf.Symbol) bool {
		return s.Name == "github.com/podctl/podctl/cmd/podctl/early/memory.anchor"
	})
	if i < 0 {
		t.Fatal("there is no anchor")
	}
	first, last, anchor := f.Section(".noptrdata"), f.Section(".bss"), symbols[i].Value
	if into := anchor - first.Addr; into > 64<<10 {
		t.Errorf("the anchor lies %d KiB into the variables", into>>10)
	}
	// As in memory.go.
	const ahead = 896 << 10
	if left := int64(last.Addr+last.Size) - int64(anchor+ahead); left > 128<<10 || left < -128<<10 {
		t.Errorf("the variables end %d KiB after what is asked for", left>>10)
	}
}

// build builds podctl as it is released, but with its symbols.
func build(t *testing.T) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "podctl")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-tags", "grpcnotrace", "-o", binary, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return binary
}
