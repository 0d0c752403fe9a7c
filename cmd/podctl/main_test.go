package main

import (
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
		own + "/podtypes": "k8s.io/kubernetes/pkg/features",
		own:               "k8s.io/kubernetes/pkg/features",
	} {
		first, then := strings.Index(string(out), "init "+early+" @"), strings.Index(string(out), "init "+late+" @")
		if first < 0 || then < 0 || first > then {
			t.Errorf("%s is not initialised before %s", early, late)
		}
	}
}

// build builds podctl as it is released.
func build(t *testing.T) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "podctl")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-tags", "grpcnotrace", "-o", binary, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return binary
}
