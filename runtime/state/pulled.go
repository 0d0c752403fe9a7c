package state

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/podctl/podctl/runtime/safefs"
)

// PulledImages remembers which images of the runtime podctl pulled: an empty file for each, with a
// name made of its id. Nothing but the removal of unused images depends on it.
type PulledImages struct{ layout Layout }

// PulledImages is the place of the images that podctl pulled.
func (l Layout) PulledImages() PulledImages { return PulledImages{l} }

func (s PulledImages) dir() string { return filepath.Join(s.layout.Root, "pulled") }

// file is the name that stands for an image: ids are the runtime's, and no names of files.
func (s PulledImages) file(id string) string {
	sum := sha256.Sum256([]byte(id))
	return hex.EncodeToString(sum[:])
}

// Add remembers that podctl pulled an image.
func (s PulledImages) Add(id string) error {
	err := s.layout.Prepare()
	if err == nil {
		err = s.touch(s.file(id))
	}
	if err != nil {
		return fmt.Errorf("noting that podctl pulled the image %s: %w", id, safefs.Cause(err))
	}
	return nil
}

func (s PulledImages) touch(name string) error {
	dir, err := makeAll(s.dir(), 0o700, 0o700)
	if err != nil {
		return err
	}
	return errors.Join(dir.Touch(name, 0o600), dir.Close())
}

// Remove forgets an image. One that was not remembered is no error.
func (s PulledImages) Remove(id string) error {
	err := s.layout.check()
	if err == nil {
		err = safefs.IgnoreMissing(safefs.RemoveFile(filepath.Join(s.dir(), s.file(id))))
	}
	if err != nil {
		return fmt.Errorf("forgetting that podctl pulled the image %s: %w", id, safefs.Cause(err))
	}
	return nil
}

// Among returns which of the images that there are podctl pulled, and forgets those that are gone.
func (s PulledImages) Among(ids []string) (map[string]bool, error) {
	names := map[string]string{}
	for _, id := range ids {
		names[s.file(id)] = id
	}
	pulled := map[string]bool{}
	err := s.layout.check()
	if err == nil {
		err = s.sort(names, pulled)
	}
	if err != nil {
		return nil, fmt.Errorf("reading which images podctl pulled: %w", safefs.Cause(err))
	}
	return pulled, nil
}

// sort takes the files that stand for an image of those names, and removes the others.
func (s PulledImages) sort(names map[string]string, pulled map[string]bool) error {
	entries, err := entriesOf(s.dir())
	for _, entry := range entries {
		id, there := names[entry.Name()]
		switch {
		case there:
			pulled[id] = true
		case len(entry.Name()) == hex.EncodedLen(sha256.Size):
			err = errors.Join(err, safefs.RemoveFile(filepath.Join(s.dir(), entry.Name())))
		}
	}
	return err
}
