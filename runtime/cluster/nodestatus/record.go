package nodestatus

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
	// Name is the name of the Node, and UID its uid in the API server.
	Name string    `json:"name"`
	UID  types.UID `json:"uid"`
	// BootID identifies the start of the kernel in which the Node was registered.
	BootID string `json:"bootID"`
}

// recordMax limits the size of the record, in bytes.
const recordMax = 16 << 10

// RecordPath returns the file of the record below the state directory.
func RecordPath(stateDir string) string { return filepath.Join(stateDir, "cluster", "node.json") }

// ReadRecord reads the record. It returns nil if this machine has not been registered.
func ReadRecord(stateDir string) (*Record, error) {
	path := RecordPath(stateDir)
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

// RecordOf is ReadRecord for a node with a name. It returns an error if this machine has been registered with another
// name. Its pods name the old Node.
func RecordOf(stateDir, name string) (*Record, error) {
	r, err := ReadRecord(stateDir)
	if err != nil || r == nil || r.Name == name {
		return r, err
	}
	return nil, fmt.Errorf("this machine is registered as the node %q, and not as %q: "+
		"start the agent with --node-name %s, or drain and delete the old node with kubectl, "+
		"stop the agent and remove %s",
		r.Name, name, r.Name, RecordPath(stateDir))
}

// write writes the record, which survives a crash of the machine.
func (r *Record) write(stateDir string) error {
	path := RecordPath(stateDir)
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
