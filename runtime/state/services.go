package state

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/podctl/podctl/runtime/filelock"
	"github.com/podctl/podctl/runtime/safefs"
)

// ServiceNames is the file of the names under which pods find Services. It follows from the Services and the pods, and is
// there so that a container that starts needs to look at no other pod.
type ServiceNames struct{ layout Layout }

// Path is the file.
func (s ServiceNames) Path() string { return filepath.Join(s.layout.Root, servicesFile) }

// unfinished is the file while it is being written.
func (s ServiceNames) unfinished() string { return filepath.Join(s.layout.Root, "."+servicesFile) }

const (
	servicesFile = "services.json"
	// servicesMax bounds what is read of it, in bytes: a thousand Services with a hundred pods each.
	servicesMax = 32 << 20
)

// Read reads the file; nil if there is none.
func (s ServiceNames) Read() ([]byte, error) {
	if err := s.layout.check(); err != nil {
		return nil, err
	}
	text, err := readPrivate(s.Path(), servicesMax)
	if safefs.Missing(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the names of Services (%s): %w", s.Path(), safefs.Cause(err))
	}
	return text, nil
}

// Write replaces the file as a whole. The caller holds the lock.
func (s ServiceNames) Write(text []byte) error {
	err := s.layout.Prepare()
	if err == nil {
		err = replaceFile(s.unfinished(), s.Path(), text)
	}
	if err != nil {
		return fmt.Errorf("writing the names of Services: %w", safefs.Cause(err))
	}
	return nil
}

// Remove removes the file. One that is gone is no error. The caller holds the lock.
func (s ServiceNames) Remove() error {
	err := s.layout.check()
	if err == nil {
		err = safefs.RemoveFile(s.Path())
	}
	if err != nil {
		return fmt.Errorf("removing the names of Services: %w", safefs.Cause(err))
	}
	return nil
}

// LockServices takes what the node does for Services for this process alone, to change it.
func (l *Locker) LockServices(ctx context.Context) (*filelock.Lock, error) {
	ctx, cancel := l.timeout(ctx)
	defer cancel()
	return l.Layout.Locks().takeOwn(ctx, lockServices, "the rules and names of Services")
}
