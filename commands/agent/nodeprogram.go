package agent

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"github.com/podctl/podctl/runtime/node"
	"github.com/podctl/podctl/runtime/safefs"
)

// nodeProgram is the program that can join a cluster.
const nodeProgram = "podctl-node"

// starterVar is the variable with the version of the podctl that starts the node program.
const starterVar = "PODCTL_STARTED_BY"

// becomeNode replaces this process with the program that can join a cluster. version is the version of this program.
func becomeNode(version string) error {
	paths, err := node.BesideProgram(nodeProgram)
	if err != nil {
		return err
	}
	program, err := findNode(paths)
	if err != nil {
		return fmt.Errorf("a node of a cluster needs the program %s: %w", nodeProgram, err)
	}
	err = program.Exec(os.Args, append(os.Environ(), starterVar+"="+version))
	return fmt.Errorf("starting %s: %w: install podctl again", program.Path, errors.Join(err, program.Close()))
}

// findNode opens the first program of the paths that exists. It refuses a program that another user could change.
func findNode(paths []string) (*safefs.Program, error) {
	for _, path := range paths {
		if _, err := os.Lstat(path); safefs.NotExist(err) {
			continue
		}
		program, err := safefs.OpenProgram(path)
		switch untrusted := (*safefs.UntrustedError)(nil); {
		case errors.As(err, &untrusted):
			return nil, fmt.Errorf("%w; install podctl again as root", err)
		case errors.Is(err, exec.ErrNotFound):
			return nil, fmt.Errorf("%s is not an executable file: install podctl again", path)
		case err != nil:
			return nil, err
		}
		return program, nil
	}
	return nil, fmt.Errorf("there is no %s: install podctl again, or run `make build build-node` in a checkout",
		strings.Join(paths, " and no "))
}

// checkStarter returns an error if a podctl of another version has started this program, because commands and the agent
// use the same files. Builds of a checkout are not compared: make builds each program only when its sources change.
func checkStarter(version string) error {
	starter, started := os.LookupEnv(starterVar)
	// A restarted agent has no starter, and other programs do not need to know it.
	if err := os.Unsetenv(starterVar); err != nil || !started || starter == version {
		return err
	}
	if !isRelease(starter) && !isRelease(version) {
		return nil
	}
	program, err := os.Executable()
	if err != nil {
		program = nodeProgram
	}
	return fmt.Errorf("%s has the version %s, and the podctl that started it has the version %s: "+
		"install both from the same package", program, version, starter)
}

// isRelease reports whether a version is the tag of a release, such as v1.2.0. Others have more parts.
func isRelease(version string) bool {
	return strings.HasPrefix(version, "v") && !strings.ContainsAny(version, "-+")
}
