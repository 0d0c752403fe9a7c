package state

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/podctl/podctl/runtime/safefs"
)

// NewTerminationLog creates the file into which a container writes its last
// words: a new one for each start, writable by any user the container runs as
// (kubelet: makeMounts). It goes with the pod's directory.
func (p Pod) NewTerminationLog(container string) (string, error) {
	path, err := p.ContainerDir(container)
	if err != nil {
		return "", fmt.Errorf("creating the termination log: %w", err)
	}
	dir, err := p.Make(path, podDirMode)
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

// RemoveTerminationLogs removes those of a container's termination logs that are meant.
func (p Pod) RemoveTerminationLogs(container string, meant func(path string) bool) error {
	path, err := p.ContainerDir(container)
	if err == nil {
		err = p.removeTerminationLogs(path, meant)
	}
	if err != nil {
		return fmt.Errorf("removing the termination logs of container %s: %w", container, err)
	}
	return nil
}

func (p Pod) removeTerminationLogs(path string, meant func(path string) bool) error {
	dir, err := p.Open(path)
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
