package state

import (
	"fmt"
	"path/filepath"

	"github.com/podctl/podctl/runtime/safefs"
	"github.com/podctl/podctl/runtime/state/statedir"
)

// ServiceFile is a file about Services that all pods share.
type ServiceFile struct {
	layout Layout
	// name is that of the file below the state directory, and what names its contents in errors.
	name, what string
}

// ServiceNames is the file of the names under which pods find Services. It follows from the Services and the pods, and is
// there so that a container that starts needs to look at no other pod.
func (l Layout) ServiceNames() ServiceFile {
	return ServiceFile{l, "services.json", "the names of Services"}
}

// Localnet is the file of the network interfaces on which podctl has set route_localnet.
func (l Layout) Localnet() ServiceFile {
	return ServiceFile{l, "localnet.json", "the interfaces with route_localnet"}
}

// serviceFiles are all of them.
func (l Layout) serviceFiles() []ServiceFile { return []ServiceFile{l.ServiceNames(), l.Localnet()} }

// servicesMax bounds what is read of a file, in bytes: a thousand Services with a hundred pods each.
const servicesMax = 32 << 20

// Path is the file.
func (s ServiceFile) Path() string { return filepath.Join(s.layout.Root, s.name) }

// unfinished is the file while it is being written.
func (s ServiceFile) unfinished() string { return filepath.Join(s.layout.Root, "."+s.name) }

// Read reads the file; nil if there is none.
func (s ServiceFile) Read() ([]byte, error) {
	text, err := s.layout.dir().Read(s.Path(), servicesMax, safefs.CheckPrivate)
	if safefs.Missing(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s (%s): %w", s.what, s.Path(), safefs.Cause(err))
	}
	return text, nil
}

// Write replaces the file as a whole. The caller holds the lock of Services.
func (s ServiceFile) Write(text []byte) error {
	if err := s.layout.dir().Replace(s.unfinished(), s.Path(), text, 0o600, statedir.Durable); err != nil {
		return fmt.Errorf("writing %s: %w", s.what, safefs.Cause(err))
	}
	return nil
}

// Remove removes the file. One that is gone is no error. The caller holds the lock of Services.
func (s ServiceFile) Remove() error {
	if err := s.layout.dir().Remove(s.Path()); err != nil {
		return fmt.Errorf("removing %s: %w", s.what, safefs.Cause(err))
	}
	return nil
}
