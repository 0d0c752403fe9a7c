package state

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// NewTerminationLog creates the file into which a container writes its last
// words: a new one for each start, writable by any user the container runs as
// (kubelet: makeMounts). It goes with the pod's directory.
func (p Pod) NewTerminationLog(container string) (string, error) {
	if err := p.MakeDir(p.ContainerDir(container), podDirMode); err != nil {
		return "", err
	}
	var random [4]byte
	if _, err := rand.Read(random[:]); err != nil {
		return "", fmt.Errorf("creating the termination log: %w", err)
	}
	path := filepath.Join(p.ContainerDir(container), hex.EncodeToString(random[:]))
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o666)
	if err != nil {
		return "", fmt.Errorf("creating the termination log: %w", err)
	}
	if err := errors.Join(f.Chmod(0o666), f.Close()); err != nil {
		return "", fmt.Errorf("creating the termination log: %w", err)
	}
	return path, nil
}

// RemoveTerminationLogs removes those of a container's termination logs that are meant.
func (p Pod) RemoveTerminationLogs(container string, meant func(path string) bool) error {
	entries, err := os.ReadDir(p.ContainerDir(container))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, entry := range entries {
		if path := filepath.Join(p.ContainerDir(container), entry.Name()); meant(path) && entry.Type().IsRegular() {
			err = errors.Join(err, removeFile(path))
		}
	}
	if err != nil {
		return fmt.Errorf("removing the termination logs of container %s: %w", container, err)
	}
	return nil
}
