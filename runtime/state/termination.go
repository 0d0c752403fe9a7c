package state

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
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
