package state

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

	"github.com/podctl/podctl/runtime/safefs"
)

// logName is the name of the pod's log directory.
func (p Pod) logName(namespace, name string) (string, error) {
	if err := firstError(p.refused, checkName(kindNamespace, namespace), checkName(kindPod, name)); err != nil {
		return "", err
	}
	return fmt.Sprintf("%s_%s_%s", namespace, name, p.uid), nil
}

// LogDir is the pod's log directory. The error is a *NameError.
func (p Pod) LogDir(namespace, name string) (string, error) {
	base, err := p.logName(namespace, name)
	if err != nil {
		return "", err
	}
	return filepath.Join(p.layout.LogRoot, base), nil
}

// containerLogDir is the directory with the logs of one container.
func (p Pod) containerLogDir(namespace, name, container string) (string, error) {
	dir, err := p.LogDir(namespace, name)
	if err = firstError(err, checkName(kindContainer, container)); err != nil {
		return "", err
	}
	return filepath.Join(dir, container), nil
}

// LogFile is the log of one attempt of a container. The error is a *NameError.
func (p Pod) LogFile(namespace, name, container string, attempt uint32) (string, error) {
	dir, err := p.containerLogDir(namespace, name, container)
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, fmt.Sprintf("%d.log", attempt)), nil
}

// OpenLogDir opens the directory with the logs of one container. No links are followed below
// the log root: containers that ship logs may be able to write there. That there is none is
// an error for which safefs.Missing is true.
func (p Pod) OpenLogDir(namespace, name, container string) (*safefs.Dir, error) {
	base, err := p.logName(namespace, name)
	if err = firstError(err, checkName(kindContainer, container)); err != nil {
		return nil, err
	}
	root, err := openDir(p.layout.LogRoot)
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
const (
	logRootMode = 0o750
	logDirMode  = 0o755
)

// MakeLogDir creates the pod's log directory, and that of one of its containers
// unless the name is empty.
func (p Pod) MakeLogDir(namespace, name, container string) error {
	base, err := p.logName(namespace, name)
	names := []string{base}
	if container != "" {
		err = firstError(err, checkName(kindContainer, container))
		names = append(names, container)
	}
	if err == nil {
		err = p.layout.makeLogDirs(names)
	}
	if err != nil {
		return fmt.Errorf("creating the log directory: %w", err)
	}
	return nil
}

func (l Layout) makeLogDirs(names []string) error {
	root, err := makeAll(l.LogRoot, logDirMode, logRootMode)
	if err != nil {
		return err
	}
	return errors.Join(makeLogDirs(root, names), root.Close())
}

// makeLogDirs makes directories in one another, each of which is one of podctl's.
func makeLogDirs(dir *safefs.Dir, names []string) error {
	if err := checkLogs(dir); err != nil || len(names) == 0 {
		return err
	}
	below, err := dir.Make(names[0], logDirMode)
	if errors.Is(err, unix.ENOTDIR) {
		return fmt.Errorf("%w: %s is not a directory; remove it, or choose another --log-root", ErrUnsafeLogs, dir.Join(names[0]))
	}
	if err != nil {
		return err
	}
	return errors.Join(makeLogDirs(below, names[1:]), below.Close())
}

// LastLogAttempt is the highest attempt of a container that has a log; false
// when there is none, or when nobody can tell (kubelet:
// calcRestartCountByLogDir).
func (p Pod) LastLogAttempt(namespace, name, container string) (uint32, bool) {
	files, err := p.listLogs(namespace, name, container)
	for _, f := range slices.Backward(files) {
		// What is no file was not written by a runtime.
		if err == nil && f.regular {
			return f.attempt, true
		}
	}
	return 0, false
}

// logFile is a log by its name: attempt.log, and behind that whatever a rotation
// added.
type logFile struct {
	name    string
	attempt uint32
	regular bool
}

// ClearLog removes what lies in the place of a log that the runtime is about to open and is
// no log: it opens whatever bears the name, and a link there leads root's writing elsewhere,
// a pipe keeps it waiting. A container that has the directory mounted can put either there.
func (p Pod) ClearLog(namespace, name, container string, attempt uint32) error {
	dir, err := p.OpenLogDir(namespace, name, container)
	if safefs.Missing(err) {
		return nil
	}
	if err == nil {
		err = errors.Join(ClearLogIn(dir, fmt.Sprintf("%d.log", attempt)), dir.Close())
	}
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

// listLogs lists the logs of one container, the lowest attempt first.
func (p Pod) listLogs(namespace, name, container string) ([]logFile, error) {
	dir, err := p.OpenLogDir(namespace, name, container)
	if safefs.Missing(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	files, err := readLogDir(dir)
	return files, errors.Join(err, dir.Close())
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
