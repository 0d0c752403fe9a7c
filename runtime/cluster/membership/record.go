package membership

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"k8s.io/apimachinery/pkg/types"

	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/safefs"
	"github.com/podctl/podctl/runtime/state/statedir"
)

// Record is what podctl keeps of its last registration.
type Record struct {
	// Name is the name of the Node, and UID its uid in the API server. The uid is empty if the user has allowed the
	// node to join another cluster.
	Name string    `json:"name"`
	UID  types.UID `json:"uid,omitempty"`
	// Service is the uid of the Service default/kubernetes, which each cluster has. It is empty until the node has seen
	// it.
	Service types.UID `json:"service,omitempty"`
	// BootID identifies the start of the kernel in which the Node was registered.
	BootID string `json:"bootID"`
	// Left is set if the user has taken the machine out of its cluster. An agent does not join a cluster then.
	Left bool `json:"left,omitempty"`
}

// recordMax limits the size of the record, in bytes.
const recordMax = 16 << 10

// Path returns the file of the record below the state directory.
func Path(stateDir string) string { return filepath.Join(stateDir, "cluster", "node.json") }

// Read reads the record. It returns nil if this machine has not been registered.
func Read(stateDir string) (*Record, error) {
	path := Path(stateDir)
	text, err := statedir.Dir{Path: stateDir}.Read(path, recordMax, safefs.CheckPrivate)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // nothing is recorded
	}
	r := &Record{}
	if err == nil {
		err = model.DecodeDocument(text, r)
	}
	if err == nil && r.Name == "" {
		err = errors.New("it has no name")
	}
	if err != nil {
		return nil, fmt.Errorf("reading the record of the node %s: %w", path, safefs.Cause(err))
	}
	return r, nil
}

// ReadFor is Read for a node with a name. It returns an error if this machine has been registered with another
// name. Its pods name the old Node.
func ReadFor(stateDir, name string) (*Record, error) {
	r, err := Read(stateDir)
	if err != nil || r == nil || r.Name == name {
		return r, err
	}
	return nil, fmt.Errorf("this machine is registered as the node %q, and not as %q: "+
		"start the agent with --node-name %s, or drain and delete the old node with kubectl, "+
		"stop the agent and remove %s",
		r.Name, name, r.Name, Path(stateDir))
}

// Write writes the record, which survives a crash of the machine.
func (r *Record) Write(stateDir string) error {
	path := Path(stateDir)
	text, err := json.Marshal(r)
	if err == nil {
		unfinished := filepath.Join(filepath.Dir(path), ".node.json")
		err = statedir.Dir{Path: stateDir}.Replace(unfinished, path, text, 0o600, statedir.Durable)
	}
	if err != nil {
		return fmt.Errorf("writing the record of the node %s: %w", path, safefs.Cause(err))
	}
	return nil
}

// Leave records that the user has taken the machine out of its cluster.
func (r *Record) Leave(stateDir string) error {
	left := *r
	left.UID, left.Service, left.Left = "", "", true
	return left.Write(stateDir)
}

// HasLeft reports whether the user has taken the machine out of its cluster.
func HasLeft(stateDir string) (bool, error) {
	r, err := Read(stateDir)
	return r != nil && r.Left, err
}

// Forget allows the node to join another cluster, or to join one again after Leave: podctl forgets to which one it
// belonged, but keeps the name of the Node. It reports whether this machine has been registered.
func Forget(stateDir string) (registered bool, err error) {
	r, err := Read(stateDir)
	if err != nil || r == nil {
		return false, err
	}
	r.UID, r.Service, r.Left = "", "", false
	return true, r.Write(stateDir)
}
