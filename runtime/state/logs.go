package state

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// LogDir is the pod's log directory.
func (p Pod) LogDir(namespace, name string) string {
	return filepath.Join(p.layout.LogRoot, fmt.Sprintf("%s_%s_%s", namespace, name, p.uid))
}

// containerLogDir is the directory with the logs of one container.
func (p Pod) containerLogDir(namespace, name, container string) string {
	return filepath.Join(p.LogDir(namespace, name), container)
}

// LogFile is the log of one attempt of a container.
func (p Pod) LogFile(namespace, name, container string, attempt uint32) string {
	return filepath.Join(p.containerLogDir(namespace, name, container), fmt.Sprintf("%d.log", attempt))
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
	if err := p.check(); err != nil {
		return err
	}
	err := makeDirs(p.layout.LogRoot, logDirMode, logRootMode)
	if err == nil {
		err = p.layout.checkLogs(p.layout.LogRoot)
	}
	if err == nil {
		err = makeDirs(p.containerLogDir(namespace, name, container), logDirMode, logDirMode)
	}
	if err == nil {
		err = p.layout.checkLogs(p.layout.LogRoot, p.LogDir(namespace, name), p.containerLogDir(namespace, name, container))
	}
	if err != nil {
		return fmt.Errorf("creating the log directory: %w", err)
	}
	return nil
}

// LastLogAttempt is the highest attempt of a container that has a log; false
// when there is none, or when nobody can tell (kubelet:
// calcRestartCountByLogDir).
func (p Pod) LastLogAttempt(namespace, name, container string) (uint32, bool) {
	files, err := readLogDir(p.containerLogDir(namespace, name, container))
	if err != nil || len(files) == 0 {
		return 0, false
	}
	return files[len(files)-1].attempt, true
}

// logFile is a log by its name: attempt.log, and behind that whatever a rotation
// added.
type logFile struct {
	name    string
	attempt uint32
}

// readLogDir lists the logs of one container, the lowest attempt first.
func readLogDir(dir string) ([]logFile, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var files []logFile
	for _, entry := range entries {
		if f, ok := parseLogName(entry.Name()); ok && !entry.IsDir() {
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
