package podlogs

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podctl/podctl/runtime/safefs"
	"github.com/podctl/podctl/runtime/state/statedir"
)

// Logs is the directory with the logs of a pod. It is below the log root, where no links are followed, because
// containers that ship logs may have write access.
type Logs struct {
	Roots           Roots
	UID             types.UID
	Namespace, Name string
	// Refused is the reason why the uid is invalid; usually nil.
	Refused error
}

// Roots holds the directory of the logs of pods, and that of the links that log shippers follow. Links is empty if
// there are no links.
type Roots struct{ Logs, Links string }

// base returns the name of the pod's log directory.
func (l Logs) base() (string, error) {
	err := statedir.FirstError(
		l.Refused,
		statedir.CheckName(statedir.KindNamespace, l.Namespace),
		statedir.CheckName(statedir.KindPod, l.Name),
	)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s_%s_%s", l.Namespace, l.Name, l.UID), nil
}

// Dir returns the pod's log directory. The error is a *statedir.NameError.
func (l Logs) Dir() (string, error) {
	base, err := l.base()
	if err != nil {
		return "", err
	}
	return filepath.Join(l.Roots.Logs, base), nil
}

// ContainerDir returns the directory with the logs of one container.
func (l Logs) ContainerDir(container string) (string, error) {
	dir, err := l.Dir()
	if err = statedir.FirstError(err, statedir.CheckName(statedir.KindContainer, container)); err != nil {
		return "", err
	}
	return filepath.Join(dir, container), nil
}

// File returns the log of one attempt of a container. The error is a *statedir.NameError.
func (l Logs) File(container string, attempt uint32) (string, error) {
	dir, err := l.ContainerDir(container)
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, logFileName(attempt)), nil
}

func logFileName(attempt uint32) string { return fmt.Sprintf("%d.log", attempt) }

// Open opens the directory with the logs of one container. If there is none, safefs.Missing is true for the error.
func (l Logs) Open(container string) (*safefs.Dir, error) {
	base, err := l.base()
	if err = statedir.FirstError(err, statedir.CheckName(statedir.KindContainer, container)); err != nil {
		return nil, err
	}
	root, err := statedir.OpenLogDir(l.Roots.Logs)
	if err != nil {
		return nil, err
	}
	defer root.Close() //nolint:errcheck // A handle on a directory.
	return root.Sub(base, container)
}

// RotatedLog returns the name of a log that is rotated at a time (kubelet: rotateLatestLog).
func RotatedLog(file string, at time.Time) string {
	return file + "." + at.UTC().Format("20060102-150405")
}

// logRootMode is the mode of the root, as the kubelet creates it. Directories below are readable for all, as the
// kubelet creates them for each pod and container.
const logRootMode = 0o750

// Make creates the pod's log directory, and one of a container unless the name is empty.
func (l Logs) Make(container string) error {
	base, err := l.base()
	names := []string{base}
	if container != "" {
		err = statedir.FirstError(err, statedir.CheckName(statedir.KindContainer, container))
		names = append(names, container)
	}
	if err == nil {
		err = makeLogDirs(l.Roots.Logs, names)
	}
	return safefs.Wrapf(err, "creating the log directory")
}

func makeLogDirs(logRoot string, names []string) error {
	root, err := statedir.MakeLogDir(logRoot, statedir.LogDirMode, logRootMode)
	if err != nil {
		return err
	}
	return errors.Join(makeTrusted(root, names), root.Close())
}

// makeTrusted creates nested directories and checks each of them.
func makeTrusted(dir *safefs.Dir, names []string) error {
	if err := statedir.CheckLogs(dir); err != nil || len(names) == 0 {
		return err
	}
	below, err := dir.Make(names[0], statedir.LogDirMode)
	if errors.Is(err, unix.ENOTDIR) {
		return fmt.Errorf("%w: %s is not a directory; remove it, or choose another --log-root",
			statedir.ErrUnsafeLogs, dir.Join(names[0]))
	}
	if err != nil {
		return err
	}
	return errors.Join(makeTrusted(below, names[1:]), below.Close())
}

// in calls work with the log directory of one container. If that is missing or not a directory, it does nothing.
func (l Logs) in(container string, work func(dir *safefs.Dir) error) error {
	dir, err := l.Open(container)
	if safefs.Missing(err) {
		return nil
	}
	if err != nil {
		return err
	}
	return errors.Join(work(dir), dir.Close())
}

// Last returns the highest attempt of a container that has a log. It returns false if there is none, or if that cannot
// be determined (kubelet: calcRestartCountByLogDir).
func (l Logs) Last(container string) (attempt uint32, has bool) {
	err := l.in(container, func(dir *safefs.Dir) error {
		files, err := readLogDir(dir)
		for _, f := range files {
			// A runtime writes only regular files.
			if f.regular {
				attempt, has = f.attempt, true
			}
		}
		return err
	})
	return attempt, has && err == nil
}

// logFile is a log, parsed from its name: attempt.log, followed by a suffix if it was rotated.
type logFile struct {
	name    string
	attempt uint32
	regular bool
}

// Clear removes a file that is not a log before the runtime opens a log with its name. The runtime opens any file with
// this name: a link would redirect root's writes, and a pipe would block. A container that has the directory mounted
// can create either.
func (l Logs) Clear(container string, attempt uint32) error {
	err := l.in(container, func(dir *safefs.Dir) error { return ClearLogIn(dir, logFileName(attempt)) })
	return safefs.Wrapf(err, "preparing the log of container %s", container)
}

// ClearLogIn is Clear for an open directory. A file with several names does not count as a log, because it may be a
// link to a protected file.
func ClearLogIn(dir *safefs.Dir, log string) error {
	info, err := dir.Lstat(log)
	if err != nil {
		return safefs.IgnoreMissing(err)
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if info.Mode().IsRegular() && ok && stat.Nlink == 1 {
		return nil
	}
	return dir.RemoveAll(log)
}

// readLogDir returns the logs in a directory, the lowest attempt first.
func readLogDir(dir *safefs.Dir) ([]logFile, error) {
	entries, err := dir.Entries()
	if err != nil {
		return nil, err
	}
	var files []logFile
	for _, entry := range entries {
		if f, ok := parseLogName(entry.Name()); ok && !entry.IsDir() {
			f.regular = entry.Type().IsRegular()
			files = append(files, f)
		}
	}
	slices.SortStableFunc(files, func(a, b logFile) int { return cmp.Compare(a.attempt, b.attempt) })
	return files, nil
}

func parseLogName(name string) (logFile, bool) {
	number, rest, ok := strings.Cut(name, ".log")
	attempt, err := strconv.ParseUint(number, 10, 32)
	if !ok || err != nil || (rest != "" && rest[0] != '.') {
		return logFile{}, false
	}
	return logFile{name: name, attempt: uint32(attempt)}, true
}

// Size returns the disk usage of the logs of one attempt of a container in bytes.
func (l Logs) Size(container string, attempt uint32) (sum int64) {
	_ = l.in(container, func(dir *safefs.Dir) error {
		files, err := readLogDir(dir)
		for _, f := range files {
			if info, lookErr := dir.Lstat(f.name); lookErr == nil && f.attempt == attempt {
				sum += statedir.Blocks(info)
			}
		}
		return err
	})
	return sum
}
