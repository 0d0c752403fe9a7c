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
	// name is the file's name in the state directory. what describes its contents in errors.
	name, what string
}

// ServiceNames returns the file with the names under which pods find Services. It is derived from the Services and the
// pods. With it, the start of a container does not need to read other pods.
func (l Layout) ServiceNames() ServiceFile {
	return ServiceFile{l, "services.json", "the names of Services"}
}

// ClusterServices returns the file with the variables of the Services of a cluster. It exists once the agent of a node
// has read the Services.
func ClusterServices(l Layout) ServiceFile {
	return ServiceFile{l, filepath.Join("cluster", "services.json"), "the variables of the cluster's Services"}
}

// Localnet returns the file with the network interfaces on which podctl has set route_localnet.
func (l Layout) Localnet() ServiceFile {
	return ServiceFile{l, "localnet.json", "the interfaces with route_localnet"}
}

// serviceFiles returns all of these files.
func (l Layout) serviceFiles() []ServiceFile { return []ServiceFile{l.ServiceNames(), l.Localnet()} }

// servicesMax limits the bytes read from a file: enough for a thousand Services with a hundred pods each.
const servicesMax = 32 << 20

// Path returns the path of the file.
func (s ServiceFile) Path() string { return filepath.Join(s.layout.Root, s.name) }

// unfinished is the temporary file for writing.
func (s ServiceFile) unfinished() string {
	return filepath.Join(filepath.Dir(s.Path()), "."+filepath.Base(s.name))
}

// Read reads the file. It returns nil if there is none.
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

// Remove removes the file. A missing file is not an error. The caller holds the lock of Services.
func (s ServiceFile) Remove() error {
	if err := s.layout.dir().Remove(s.Path()); err != nil {
		return fmt.Errorf("removing %s: %w", s.what, safefs.Cause(err))
	}
	return nil
}
