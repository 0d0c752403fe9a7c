package state

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/podctl/podctl/runtime/safefs"
	"github.com/podctl/podctl/runtime/state/statedir"
)

// TerminationLogs is the directory with the termination messages of a container.
type TerminationLogs struct {
	pod       Pod
	container string
}

// Dir returns the directory. The error is a *NameError.
func (t TerminationLogs) Dir() (string, error) {
	err := statedir.FirstError(t.pod.refused, statedir.CheckName(statedir.KindContainer, t.container))
	return joined(err, t.above(), t.container)
}

// above returns the directory of all containers.
func (t TerminationLogs) above() string { return filepath.Join(t.pod.Dir(), "containers") }

// New creates the file for a container's termination message: a new one for each start, writable by any user of the
// container (kubelet: makeMounts). It is removed with the pod's directory.
func (t TerminationLogs) New() (string, error) {
	path, err := t.Dir()
	if err != nil {
		return "", fmt.Errorf("creating the termination log: %w", err)
	}
	dir, err := t.pod.Make(path, podDirMode)
	if err != nil {
		return "", err
	}
	defer dir.Close() //nolint:errcheck // A handle on a directory.
	var random [4]byte
	if _, err = rand.Read(random[:]); err != nil {
		return "", fmt.Errorf("creating the termination log: %w", err)
	}
	name := hex.EncodeToString(random[:])
	f, err := dir.Create(name, 0o666)
	if err == nil {
		err = f.Close()
	}
	if err != nil {
		return "", fmt.Errorf("creating the termination log: %w", err)
	}
	return filepath.Join(path, name), nil
}

// Remove removes the termination messages for which meant returns true.
func (t TerminationLogs) Remove(meant func(path string) bool) error {
	path, err := t.Dir()
	if err == nil {
		err = t.remove(path, meant)
	}
	return safefs.Wrapf(err, "removing the termination logs of container %s", t.container)
}

func (t TerminationLogs) remove(path string, meant func(path string) bool) error {
	dir, err := t.pod.Open(path)
	if err != nil {
		return safefs.IgnoreMissing(err)
	}
	defer dir.Close() //nolint:errcheck // A handle on a directory.
	entries, err := dir.Entries()
	for _, entry := range entries {
		if meant(filepath.Join(path, entry.Name())) && entry.Type().IsRegular() {
			err = errors.Join(err, dir.Remove(entry.Name()))
		}
	}
	return err
}
