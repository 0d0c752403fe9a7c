package main

import (
	"os/exec"
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
