package state

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/podctl/podctl/runtime/safefs"
	"github.com/podctl/podctl/runtime/state/statedir"
)

// PulledImages remembers which images of the runtime podctl pulled: an empty file for each, with a
// name made of its id. Nothing but the removal of unused images depends on it.
type PulledImages struct{ layout Layout }

func (s PulledImages) dir() string { return filepath.Join(s.layout.Root, "pulled") }

// PulledName is the name that stands for an image: ids are the runtime's, and no names of files.
func PulledName(id string) string {
	sum := sha256.Sum256([]byte(id))
	return hex.EncodeToString(sum[:])
}

// Add remembers that podctl pulled an image.
func (s PulledImages) Add(id string) error {
	path := filepath.Join(s.dir(), PulledName(id))
	if there, err := s.layout.dir().Exists(path); err == nil && there {
		return nil
	}
	// Another process may do the same.
	if err := s.layout.dir().Create(path, nil, 0o600, statedir.Volatile); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("noting that podctl pulled the image %s: %w", id, safefs.Cause(err))
	}
	return nil
}

// Forget forgets an image by the name that stands for it. One that was not remembered is no error.
func (s PulledImages) Forget(name string) error {
	if err := s.layout.dir().Remove(filepath.Join(s.dir(), name)); err != nil {
		return fmt.Errorf("forgetting an image that podctl pulled: %w", safefs.Cause(err))
	}
	return nil
}

// List reads the names that stand for the images that podctl pulled. Other names are not podctl's.
func (s PulledImages) List() (map[string]bool, error) {
	entries, err := s.layout.dir().Entries(s.dir())
	if err != nil {
		return nil, fmt.Errorf("reading which images podctl pulled: %w", safefs.Cause(err))
	}
	names := map[string]bool{}
	for _, entry := range entries {
		if _, err := hex.DecodeString(entry.Name()); err == nil && len(entry.Name()) == len(PulledName("")) {
			names[entry.Name()] = true
		}
	}
	return names, nil
}
