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

// Logs is the directory with the logs of a pod. It lies in the log root, below which no links
// are followed: containers that ship logs may be able to write there.
type Logs struct {
	Roots           Roots
	UID             types.UID
	Namespace, Name string
	// Refused is why the uid is not taken; nil as a rule.
	Refused error
}

// Roots are the directory of the logs of pods and that of the links to them that log shippers follow; empty for no links.
type Roots struct{ Logs, Links string }

// base is the name of the pod's log directory.
func (l Logs) base() (string, error) {
	if err := statedir.FirstError(l.Refused, statedir.CheckName(statedir.KindNamespace, l.Namespace), statedir.CheckName(statedir.KindPod, l.Name)); err != nil {
		return "", err
	}
	return fmt.Sprintf("%s_%s_%s", l.Namespace, l.Name, l.UID), nil
}

// Dir is the pod's log directory. The error is a *statedir.NameError.
func (l Logs) Dir() (string, error) {
	base, err := l.base()
	if err != nil {
		return "", err
	}
	return filepath.Join(l.Roots.Logs, base), nil
}

// ContainerDir is the directory with the logs of one container.
func (l Logs) ContainerDir(container string) (string, error) {
	dir, err := l.Dir()
	if err = statedir.FirstError(err, statedir.CheckName(statedir.KindContainer, container)); err != nil {
		return "", err
	}
	return filepath.Join(dir, container), nil
}

// File is the log of one attempt of a container. The error is a *statedir.NameError.
func (l Logs) File(container string, attempt uint32) (string, error) {
	dir, err := l.ContainerDir(container)
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, logFileName(attempt)), nil
}

func logFileName(attempt uint32) string { return fmt.Sprintf("%d.log", attempt) }

// Open opens the directory with the logs of one container. That there is none is an error for
// which safefs.Missing is true.
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

// RotatedLog is the name a log gets when it is rotated at that time (kubelet:
// rotateLatestLog).
func RotatedLog(file string, at time.Time) string {
	return file + "." + at.UTC().Format("20060102-150405")
}

// The modes of log directories: the root's is as the kubelet sets it up, and
// those below are open, as the kubelet makes them for each pod and container.
const logRootMode = 0o750

// Make creates the pod's log directory, and that of one of its containers unless the name is
// empty.
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
	if err != nil {
		return fmt.Errorf("creating the log directory: %w", err)
	}
	return nil
}

func makeLogDirs(logRoot string, names []string) error {
	root, err := statedir.MakeLogDir(logRoot, statedir.LogDirMode, logRootMode)
	if err != nil {
		return err
	}
	return errors.Join(makeTrusted(root, names), root.Close())
}

// makeTrusted makes directories in one another, each of which is one of podctl's.
func makeTrusted(dir *safefs.Dir, names []string) error {
	if err := statedir.CheckLogs(dir); err != nil || len(names) == 0 {
		return err
	}
	below, err := dir.Make(names[0], statedir.LogDirMode)
	if errors.Is(err, unix.ENOTDIR) {
		return fmt.Errorf("%w: %s is not a directory; remove it, or choose another --log-root", statedir.ErrUnsafeLogs, dir.Join(names[0]))
	}
	if err != nil {
		return err
	}
	return errors.Join(makeTrusted(below, names[1:]), below.Close())
}

// in does something in the directory with the logs of one container. What is no directory in its place has none.
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

// Last is the highest attempt of a container that has a log; false
// when there is none, or when nobody can tell (kubelet:
// calcRestartCountByLogDir).
func (l Logs) Last(container string) (attempt uint32, has bool) {
	err := l.in(container, func(dir *safefs.Dir) error {
		files, err := readLogDir(dir)
		for _, f := range files {
			// What is no file was not written by a runtime.
			if f.regular {
				attempt, has = f.attempt, true
			}
		}
		return err
	})
	return attempt, has && err == nil
}

// logFile is a log by its name: attempt.log, and behind that whatever a rotation
// added.
type logFile struct {
	name    string
	attempt uint32
	regular bool
}

// Clear removes what lies in the place of a log that the runtime is about to open and is
// no log: it opens whatever bears the name, and a link there leads root's writing elsewhere,
// a pipe keeps it waiting. A container that has the directory mounted can put either there.
func (l Logs) Clear(container string, attempt uint32) error {
	err := l.in(container, func(dir *safefs.Dir) error { return ClearLogIn(dir, logFileName(attempt)) })
	if err != nil {
		return fmt.Errorf("making room for the log of container %s: %w", container, err)
	}
	return nil
}

// ClearLogIn does the same in an open directory. A file with several names counts as no log:
// another one may be where nobody should write.
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

// readLogDir lists the logs in a directory, the lowest attempt first.
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

// Size is how much the logs of one attempt of a container take on disk.
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
