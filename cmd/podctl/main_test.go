package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// mostPackages limits the packages that are initialised at each start.
const mostPackages = 363

// TestEarlyPackagesAreInitializedFirst checks that packages that prepare the initialisation of a library come before
// it. Go's order depends on the imports of each package.
func TestEarlyPackagesAreInitializedFirst(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), build(t), "version", "--client")
	cmd.Env = append(os.Environ(), "GODEBUG=inittrace=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if count := strings.Count("\n"+string(out), "\ninit "); count > mostPackages {
		t.Errorf("%d packages are initialised, more than %d: a new dependency costs every command time", count, mostPackages)
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

// build builds podctl like a release.
func build(t *testing.T) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "podctl")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-tags", "grpcnotrace,no_gogo,nethttpomithttp2", "-o", binary, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return binary
}
