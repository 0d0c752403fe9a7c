package state

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/apimachinery/pkg/types"

	"github.com/podctl/podctl/runtime/filelock"
	"github.com/podctl/podctl/runtime/safefs"
)

// ownEntries lists podctl's entries in the state directory, except the locks.
func ownEntries(l Layout) []string {
	names := []string{
		podsName, claimsName, "objects", "workloads", "events", "pulled", "digest.key", "node", "node.lock",
		"agent.sock", "cluster", "pki", podsAPIName, podResourcesName, devicesName, imageManagerName,
	}
	for _, f := range l.serviceFiles() {
		names = append(names, filepath.Base(f.Path()), filepath.Base(f.unfinished()))
	}
	return names
}

// Purge removes all files of podctl in the state directory and the log root, including the data of claims, archived
// logs and the logs of these pods. Nothing may be mounted there, and no pod may run. It frees the lock of the agent,
// which the caller holds. Files of users or other programs stay, and are returned.
func (l Layout) Purge(pods []types.UID, agent *filelock.Lock) (kept []string, err error) {
	root, err := l.dir().Open()
	if err != nil {
		return nil, errors.Join(err, agent.Unlock())
	}
	defer root.Close() //nolint:errcheck // A handle on a directory.
	errs := []error{l.logs().Purge(pods)}
	for _, name := range ownEntries(l) {
		errs = append(errs, safefs.IgnoreMissing(root.RemoveAll(name)))
	}
	errs = append(errs, agent.Unlock(), safefs.IgnoreMissing(root.RemoveAll(filepath.Base(l.Locks().dir()))))
	for _, dir := range []string{l.LogRoot, l.ContainerLogRoot, l.Root} {
		kept = append(kept, removeDir(dir)...)
	}
	if err = errors.Join(errs...); err != nil {
		err = fmt.Errorf("removing the files of podctl: %w", err)
	}
	return kept, err
}

// removeDir removes a directory if it is empty. Otherwise it returns its entries.
func removeDir(dir string) []string {
	if dir == "" || os.Remove(dir) == nil {
		return nil
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil // The directory does not exist.
	}
	var kept []string
	for _, entry := range entries {
		kept = append(kept, filepath.Join(dir, entry.Name()))
	}
	return kept
}
