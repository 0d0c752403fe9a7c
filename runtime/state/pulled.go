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

// PulledImages records which images of the runtime podctl pulled, as an empty file for each, named after its id. Only
// the removal of unused images depends on it.
type PulledImages struct{ layout Layout }

func (s PulledImages) dir() string { return filepath.Join(s.layout.Root, "pulled") }

// PulledName returns the file name for an image. An id of the runtime may not be a valid file name.
func PulledName(id string) string {
	sum := sha256.Sum256([]byte(id))
	return hex.EncodeToString(sum[:])
}

// Add records that podctl pulled an image.
func (s PulledImages) Add(id string) error {
	path := filepath.Join(s.dir(), PulledName(id))
	if there, err := s.layout.dir().Exists(path); err == nil && there {
		return nil
	}
	// Another process may add the same image.
	if err := s.layout.dir().Create(path, nil, 0o600, statedir.Volatile); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("recording that podctl pulled the image %s: %w", id, safefs.Cause(err))
	}
	return nil
}

// Forget removes an image, given by its file name. An image without a record is not an error.
func (s PulledImages) Forget(name string) error {
	err := s.layout.dir().Remove(filepath.Join(s.dir(), name))
	return safefs.Wrapf(safefs.Cause(err), "removing the record of an image that podctl pulled")
}

// List returns the file names of the images that podctl pulled. It ignores other names, which do not belong to podctl.
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
