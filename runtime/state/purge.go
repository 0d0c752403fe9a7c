package state

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/podctl/podctl/runtime/filelock"
	"github.com/podctl/podctl/runtime/safefs"
)

// ownEntries are what podctl makes in the state directory, but for the locks.
func (l Layout) ownEntries() []string {
	names := []string{"pods", "claims", "objects", "workloads", "events", "pulled", "digest.key", "node", "node.lock", "agent.sock", "pods.sock"}
	for _, f := range l.serviceFiles() {
		names = append(names, filepath.Base(f.Path()), filepath.Base(f.unfinished()))
	}
	return names
}

// Purge removes everything that podctl made in the state directory and the log root: also the data of claims, archived logs and the
// logs of these pods. Nothing may be mounted there, and no pod may run. It frees the lock of the agent, which the caller holds.
// What users or other programs put there stays, and is returned.
func (l Layout) Purge(pods []types.UID, agent *filelock.Lock) (kept []string, err error) {
	root, err := l.root()
	if err != nil {
		return nil, errors.Join(err, agent.Unlock())
	}
	errs := []error{l.purgeLogs(pods)}
	for _, name := range l.ownEntries() {
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

// purgeLogs removes archived logs, the logs of pods, and links to logs that are gone.
func (l Layout) purgeLogs(pods []types.UID) error {
	errs := []error{os.RemoveAll(l.DeletedLogs().dir())}
	entries, err := os.ReadDir(l.LogRoot)
	errs = append(errs, safefs.IgnoreMissing(err))
	for _, entry := range entries {
		for _, uid := range pods {
			if strings.HasSuffix(entry.Name(), "_"+string(uid)) {
				errs = append(errs, os.RemoveAll(filepath.Join(l.LogRoot, entry.Name())))
			}
		}
	}
	if l.ContainerLogRoot == "" {
		return errors.Join(errs...)
	}
	links, err := os.ReadDir(l.ContainerLogRoot)
	errs = append(errs, safefs.IgnoreMissing(err))
	for _, link := range links {
		path := filepath.Join(l.ContainerLogRoot, link.Name())
		target, err := os.Readlink(path)
		if err != nil || !strings.HasPrefix(target, l.LogRoot+"/") {
			continue
		}
		if _, err = os.Stat(target); errors.Is(err, os.ErrNotExist) {
			errs = append(errs, safefs.RemoveFile(path))
		}
	}
	return errors.Join(errs...)
}

// removeDir removes a directory if nothing is in it, and returns what is.
func removeDir(dir string) []string {
	if dir == "" || os.Remove(dir) == nil {
		return nil
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil // There is no such directory.
	}
	var kept []string
	for _, entry := range entries {
		kept = append(kept, filepath.Join(dir, entry.Name()))
	}
	return kept
}
