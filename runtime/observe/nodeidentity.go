package observe

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"

	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/safefs"
	"github.com/podctl/podctl/runtime/state/statedir"
)

// identityFile is the file below the state directory with the way in which the API server knows this machine. With it,
// every process shows the same values in pods of the API server. Only the agent writes it. A machine that was never a
// node of a cluster has none.
type identityFile struct{ statedir.Dir }

func (f identityFile) path() string { return filepath.Join(f.Path, "cluster", "identity.json") }

// identityMax limits the bytes of the file.
const identityMax = 64 << 10

// read reads the file. It returns nil if there is none.
func (f identityFile) read() (*model.NodeIdentity, error) {
	text, err := f.Read(f.path(), identityMax, safefs.CheckPrivate)
	if safefs.Missing(err) {
		return nil, nil // the machine is no node of a cluster
	}
	identity := &model.NodeIdentity{}
	if err == nil {
		err = model.DecodeDocument(text, identity)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the identity of the node %s: %w", f.path(), safefs.Cause(err))
	}
	return identity, nil
}

// write writes the file, unless it has this content.
func (f identityFile) write(identity *model.NodeIdentity) error {
	text, err := json.Marshal(identity)
	if err != nil {
		return fmt.Errorf("encoding the identity of the node: %w", err)
	}
	before, err := f.Read(f.path(), identityMax, safefs.CheckPrivate)
	if err == nil && bytes.Equal(before, text) {
		return nil
	}
	unfinished := filepath.Join(filepath.Dir(f.path()), ".identity.json")
	if err = f.Replace(unfinished, f.path(), text, 0o600, statedir.Durable); err != nil {
		return fmt.Errorf("writing the identity of the node: %w", safefs.Cause(err))
	}
	return nil
}

// Identify stores how the API server knows this machine. Pods of the API server see it from now on.
func (h *Host) Identify(identity *model.NodeIdentity) error {
	if err := h.identities.write(identity); err != nil {
		return err
	}
	h.Renew()
	return nil
}
