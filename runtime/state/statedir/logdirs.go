package statedir

import (
	"errors"
	"io/fs"
	"path/filepath"

	"github.com/podctl/podctl/runtime/safefs"
)

// LogDirMode is the mode of the log directories of pods and containers, as in a kubelet.
const LogDirMode = 0o755

// MakeLogDir opens a log directory. It creates it and its parents if necessary.
func MakeLogDir(path string, above, perm fs.FileMode) (*safefs.Dir, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	return safefs.MakeAll(path, above, perm)
}

// OpenLogDir opens a log directory.
func OpenLogDir(path string) (*safefs.Dir, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	return safefs.OpenDir(path)
}

// ErrUnsafeLogs reports a log directory that cannot be trusted.
var ErrUnsafeLogs = errors.New("the log directory cannot be trusted")

// CheckLogs refuses a log directory that another user owns or can write to, because the runtime would follow links in
// it as root.
func CheckLogs(dir *safefs.Dir) error {
	info, err := dir.Stat()
	if err != nil {
		return err
	}
	return trusted{path: dir.Path(), unsafe: ErrUnsafeLogs, option: "--log-root", mode: LogDirMode}.check(info)
}
