package podlogs

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podctl/podctl/runtime/safefs"
	"github.com/podctl/podctl/runtime/state/statedir"
)

// asideFormat is the format of the time at the end of an archived log directory.
const asideFormat = "20060102-150405.000000"

// Deleted holds the logs of deleted pods. Its directory is in LogRoot, so moving logs there is one rename on any disk,
// which a crash or a full disk cannot interrupt. It is one level deeper than the patterns of log shippers
// (/var/log/pods/*/*/*.log), so nothing is shipped twice. A kubelet that takes over the machine removes it, like the
// logs of every pod it does not know.
type Deleted struct{ Roots Roots }

// Dir returns the directory of the archived logs.
func (s Deleted) Dir() string { return filepath.Join(s.Roots.Logs, deletedName) }

// deletedName is the name of that directory in LogRoot.
const deletedName = ".deleted"

// nameMax is the maximum length of a file name in bytes.
const nameMax = 255

// Archive moves the logs of a deleted pod to .deleted, and removes the links to them. The next pod with the same name
// and uid then starts at attempt zero. Only the latest logs of each pod are kept, until `podctl prune`, so repeated
// deletes and applies do not fill the disk.
func (l Logs) Archive(now time.Time) error {
	err := l.removeAllLinks()
	if err == nil {
		err = l.inRoot(func(root *safefs.Dir, base string) error { return archive(root, base, now) })
	}
	return safefs.Wrapf(err, "setting the pod's logs aside")
}

// archive moves the logs of one pod to the archive. It replaces logs of the pod archived before.
func archive(root *safefs.Dir, base string, now time.Time) error {
	dir, err := makePlain(root, deletedName)
	if err != nil {
		return err
	}
	defer dir.Close() //nolint:errcheck // A handle on a directory.
	entries, err := dir.Entries()
	for _, entry := range entries {
		if text, ok := strings.CutPrefix(entry.Name(), base+"."); ok && isAsideTime(text) {
			err = errors.Join(err, dir.RemoveAll(entry.Name()))
		}
	}
	if err != nil {
		return err
	}
	name := base + "." + now.UTC().Format(asideFormat)
	if len(name) > nameMax {
		// The name of a pod leaves enough space for the time. A kubelet's name also has the node's name.
		return root.RemoveAll(base)
	}
	return root.Rename(base, dir, name)
}

// makePlain creates a directory for podctl. It replaces anything that is not a directory: a container that ships logs
// may have created a link there.
func makePlain(dir *safefs.Dir, name string) (*safefs.Dir, error) {
	sub, err := dir.Make(name, logRootMode)
	if !errors.Is(err, unix.ENOTDIR) {
		return sub, err
	}
	if err = dir.Remove(name); err != nil {
		return nil, err
	}
	return dir.Make(name, logRootMode)
}

func isAsideTime(text string) bool {
	_, err := time.Parse(asideFormat, text)
	return err == nil
}

// Log is the directory with the logs of a deleted pod.
type Log struct {
	Path      string
	Namespace string
	Name      string
	UID       types.UID
	// At is when the pod was deleted.
	At time.Time
}

// List returns the archived logs by name. It ignores other names, which do not belong to podctl.
func (s Deleted) List() (logs []Log, err error) {
	err = s.in(func(dir *safefs.Dir) error {
		entries, failed := dir.Entries()
		for _, entry := range entries {
			if d, ok := ParseDeleted(entry.Name()); ok && entry.IsDir() {
				d.Path = filepath.Join(s.Dir(), entry.Name())
				logs = append(logs, d)
			}
		}
		return failed
	})
	if err != nil {
		return nil, fmt.Errorf("reading the logs of deleted pods: %w", err)
	}
	return logs, nil
}

// in calls work with the archive directory. If that is missing or not a directory, it does nothing.
func (s Deleted) in(work func(dir *safefs.Dir) error) error {
	return inDir(s.Roots.Logs, func(root *safefs.Dir) error {
		dir, err := root.Open(deletedName)
		if safefs.Missing(err) {
			return nil
		}
		if err != nil {
			return err
		}
		return errors.Join(work(dir), dir.Close())
	})
}

// ParseDeleted parses NAMESPACE_NAME_UID.TIME.
func ParseDeleted(name string) (Log, bool) {
	cut := len(name) - len(asideFormat) - 1
	if cut < 0 || name[cut] != '.' {
		return Log{}, false
	}
	at, err := time.Parse(asideFormat, name[cut+1:])
	parts := strings.Split(name[:cut], "_")
	if err != nil || len(parts) != 3 {
		return Log{}, false
	}
	d := Log{Namespace: parts[0], Name: parts[1], UID: types.UID(parts[2]), At: at}
	err = statedir.FirstError(
		statedir.CheckName(statedir.KindNamespace, parts[0]),
		statedir.CheckName(statedir.KindPod, parts[1]),
		statedir.CheckName(statedir.KindUID, parts[2]),
	)
	return d, err == nil
}

// Remove removes the logs of a deleted pod. The caller holds the pod's lock.
func (s Deleted) Remove(d Log) error {
	name, ok := strings.CutPrefix(d.Path, s.Dir()+"/")
	if ok {
		_, ok = ParseDeleted(name)
	}
	if !ok {
		return fmt.Errorf("removing the logs of a deleted pod: %s is not such a directory in %s", d.Path, s.Dir())
	}
	if err := s.in(func(dir *safefs.Dir) error { return dir.RemoveAll(name) }); err != nil {
		return fmt.Errorf("removing the logs of a deleted pod: %w", err)
	}
	return nil
}
