package state

import (
	"fmt"
	"path/filepath"

	"github.com/podctl/podctl/runtime/safefs"
	"github.com/podctl/podctl/runtime/state/statedir"
)

// SharedFile is a file that all pods share.
type SharedFile struct {
	layout Layout
	// name is the file's name in the state directory. what describes its contents in errors.
	name, what string
}

// ServiceNames returns the file with the names under which pods find Services. It is derived from the Services and the
// pods. With it, the start of a container does not need to read other pods.
func (l Layout) ServiceNames() SharedFile {
	return SharedFile{l, "services.json", "the names of Services"}
}

// ClusterServices returns the file with the variables of the Services of a cluster. It exists once the agent of a node
// has read the Services.
func ClusterServices(l Layout) SharedFile {
	return SharedFile{l, filepath.Join("cluster", "services.json"), "the variables of the cluster's Services"}
}

// ClusterClasses returns the file with the RuntimeClasses of a cluster. It exists once the agent of a node has read
// them.
func ClusterClasses(l Layout) SharedFile {
	return SharedFile{l, filepath.Join("cluster", "runtimeclasses.json"), "the cluster's RuntimeClasses"}
}

// Devices returns the record of allocated devices, with the name and the format of a kubelet.
func Devices(l Layout) SharedFile {
	return SharedFile{l, filepath.Join(devicesName, "kubelet_internal_checkpoint"), "the record of allocated devices"}
}

// DevicesSocket returns the path of the socket on which device plugins register, as in a kubelet's root directory. The
// sockets of the plugins are in the same directory.
func DevicesSocket(l Layout) string { return filepath.Join(l.Root, devicesName, "kubelet.sock") }

const devicesName = "device-plugins"

// Localnet returns the file with the network interfaces on which podctl has set route_localnet.
func (l Layout) Localnet() SharedFile {
	return SharedFile{l, "localnet.json", "the interfaces with route_localnet"}
}

// serviceFiles returns the files about podctl's own Services.
func (l Layout) serviceFiles() []SharedFile { return []SharedFile{l.ServiceNames(), l.Localnet()} }

// sharedMax limits the bytes of a file: enough for a thousand Services with a hundred pods each.
const sharedMax = 32 << 20

// Path returns the path of the file.
func (s SharedFile) Path() string { return filepath.Join(s.layout.Root, s.name) }

// unfinished is the temporary file for writing.
func (s SharedFile) unfinished() string {
	return filepath.Join(filepath.Dir(s.Path()), "."+filepath.Base(s.name))
}

// Read reads the file. It returns nil if there is none.
func (s SharedFile) Read() ([]byte, error) {
	text, err := s.layout.dir().Read(s.Path(), sharedMax, safefs.CheckPrivate)
	if safefs.Missing(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s (%s): %w", s.what, s.Path(), safefs.Cause(err))
	}
	return text, nil
}

// Write replaces the file as a whole. The caller is the only writer: for a file about podctl's own Services, it holds
// their lock. A text that Read would refuse is an error.
func (s SharedFile) Write(text []byte) error {
	if len(text) > sharedMax {
		return fmt.Errorf("writing %s: %d bytes are more than %d", s.what, len(text), sharedMax)
	}
	err := s.layout.dir().Replace(s.unfinished(), s.Path(), text, 0o600, statedir.Durable)
	return safefs.Wrapf(safefs.Cause(err), "writing %s", s.what)
}

// Remove removes the file. A missing file is not an error. The caller holds the lock of Services.
func (s SharedFile) Remove() error {
	return safefs.Wrapf(safefs.Cause(s.layout.dir().Remove(s.Path())), "removing %s", s.what)
}
