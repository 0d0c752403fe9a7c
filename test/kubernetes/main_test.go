package kubernetes

import (
	"fmt"
	"os"
	"testing"
)

// stageEnv sets the stage of a process of this program.
const stageEnv = "PODCTL_KUBERNETES_STAGE"

const (
	stageInit  = "init"
	stageTests = "tests"
)

// needed holds the programs and files for all tests.
type needed struct {
	podctl, images, containerd, services string
}

func TestMain(m *testing.M) {
	var code int
	var err error
	switch os.Getenv(stageEnv) {
	case stageInit:
		code, err = beInit()
	case stageTests:
		code = m.Run()
	default:
		code, err = runInside()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "test-kubernetes:", err)
		code = max(code, 1)
	}
	os.Exit(code)
}

// given reads the paths from the environment, or returns an error.
func given() (needed, error) {
	var missing error
	get := func(name string) string {
		value := os.Getenv(name)
		if value == "" {
			missing = fmt.Errorf("%s is not set; run these tests by `make test-kubernetes` or `make test-conformance`", name)
		}
		return value
	}
	n := needed{
		podctl: get("PODCTL_BIN"), images: get("PODCTL_IMAGES"), containerd: get("PODCTL_CONTAINERD"),
		services: get("SERVICES_BIN"),
	}
	return n, missing
}

// setting returns a variable that only some tests need.
func setting(t *testing.T, name string) string {
	t.Helper()
	value := os.Getenv(name)
	if value == "" {
		t.Fatalf("%s is not set; the Makefile sets it", name)
	}
	return value
}
