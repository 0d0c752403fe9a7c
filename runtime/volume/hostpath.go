package volume

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	v1 "k8s.io/api/core/v1"
)

// hostPathCheck is what a type of hostPath asks of the file that is there.
type hostPathCheck struct {
	matches func(fs.FileMode) bool
	what    string
}

func hostPathChecks() map[v1.HostPathType]hostPathCheck {
	directory := hostPathCheck{fs.FileMode.IsDir, "a directory"}
	file := hostPathCheck{fs.FileMode.IsRegular, "a file"}
	return map[v1.HostPathType]hostPathCheck{
		v1.HostPathDirectory:         directory,
		v1.HostPathDirectoryOrCreate: directory,
		v1.HostPathFile:              file,
		v1.HostPathFileOrCreate:      file,
		v1.HostPathSocket:            {func(m fs.FileMode) bool { return m&fs.ModeSocket != 0 }, "a socket"},
		v1.HostPathCharDev:           {func(m fs.FileMode) bool { return m&fs.ModeCharDevice != 0 }, "a character device"},
		v1.HostPathBlockDev:          {func(m fs.FileMode) bool { return m&fs.ModeDevice != 0 && m&fs.ModeCharDevice == 0 }, "a block device"},
	}
}

// checkHostPath looks whether a host's path is what its type says.
func checkHostPath(source *v1.HostPathVolumeSource) error {
	check, ok := hostPathChecks()[hostPathType(source)]
	if !ok {
		return nil
	}
	info, err := os.Stat(source.Path)
	if err != nil {
		return fmt.Errorf("hostPath: %w", err)
	}
	if !check.matches(info.Mode()) {
		return fmt.Errorf("hostPath: %s is not %s", source.Path, check.what)
	}
	return nil
}

func hostPathType(source *v1.HostPathVolumeSource) v1.HostPathType {
	if source.Type == nil {
		return v1.HostPathUnset
	}
	return *source.Type
}

// prepareHostPath creates what a type of ...OrCreate asks for, and checks it.
func prepareHostPath(source *v1.HostPathVolumeSource) error {
	_, err := os.Stat(source.Path)
	missing := errors.Is(err, fs.ErrNotExist)
	switch hostPathType(source) {
	case v1.HostPathDirectoryOrCreate:
		if missing {
			if err := os.MkdirAll(source.Path, 0o755); err != nil {
				return fmt.Errorf("hostPath: %w", err)
			}
		}
	case v1.HostPathFileOrCreate:
		if missing {
			if err := os.WriteFile(source.Path, nil, 0o644); err != nil {
				return fmt.Errorf("hostPath: %w", err)
			}
		}
	case v1.HostPathUnset, v1.HostPathDirectory, v1.HostPathFile, v1.HostPathSocket, v1.HostPathCharDev, v1.HostPathBlockDev:
	}
	return checkHostPath(source)
}
