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

// asideFormat is the time at the end of a directory of logs that were set aside.
const asideFormat = "20060102-150405.000000"

// Deleted holds the logs of pods that were deleted. It lies in LogRoot, so
// that moving logs there is one rename on any disk, which a crash can neither
// halve nor a full disk stop; and below a directory of its own, one level deeper
// than the patterns of log shippers (/var/log/pods/*/*/*.log) reach, so that
// nothing is shipped twice. A kubelet that takes over the machine removes it, as
// it removes the logs of every pod it does not know.
type Deleted struct{ Roots Roots }

// Dir is the directory of them.
func (s Deleted) Dir() string { return filepath.Join(s.Roots.Logs, deletedName) }

// deletedName is the name in LogRoot of what was set aside.
const deletedName = ".deleted"

// nameMax is the length of the longest name that a directory can have, in bytes.
const nameMax = 255

// Archive moves the logs of a pod that was deleted out of the way of the
// next pod of that name and uid, which then starts at attempt zero, and removes
// the links to them. They can still be read in .deleted: the newest ones of
// each pod are kept, so that deleting and applying in a loop does not fill the
// disk, until `podctl prune` removes those too.
func (l Logs) Archive(now time.Time) error {
	err := l.removeAllLinks()
	if err == nil {
		err = l.inRoot(func(root *safefs.Dir, base string) error { return archive(root, base, now) })
	}
	if err != nil {
		return fmt.Errorf("setting the pod's logs aside: %w", err)
	}
	return nil
}

// archive moves the logs of one pod to those of deleted pods, in the place of what was set
// aside of it before.
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
		return root.RemoveAll(base) // A pod's own name leaves room for the time. That of a kubelet has the node's name in it, too.
	}
	return root.Rename(base, dir, name)
}

// makePlain makes a directory of podctl's own, in the place of what is no directory: a
// container that ships logs may have put a link there.
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

// Log is the directory with the logs of a pod that was deleted.
type Log struct {
	Path      string
	Namespace string
	Name      string
	UID       types.UID
	// At is when the pod was deleted.
	At time.Time
}

// List lists what Archive has set aside, by name. What lies there
// under other names is not podctl's.
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

// in does something in the directory. Something else in its place has no logs in it.
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

// ParseDeleted reads NAMESPACE_NAME_UID.TIME.
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
	return d, statedir.FirstError(statedir.CheckName(statedir.KindNamespace, parts[0]), statedir.CheckName(statedir.KindPod, parts[1]), statedir.CheckName(statedir.KindUID, parts[2])) == nil
}

// Remove removes the logs of a deleted pod. The caller holds the pod's
// lock.
func (s Deleted) Remove(d Log) error {
	name, ok := strings.CutPrefix(d.Path, s.Dir()+"/")
	if ok {
		_, ok = ParseDeleted(name)
	}
	if !ok {
		return fmt.Errorf("removing the logs of a deleted pod: %s is no such directory in %s", d.Path, s.Dir())
	}
	if err := s.in(func(dir *safefs.Dir) error { return dir.RemoveAll(name) }); err != nil {
		return fmt.Errorf("removing the logs of a deleted pod: %w", err)
	}
	return nil
}
