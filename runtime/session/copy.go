package session

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/filecopy"
)

// ContainerFiles is the file system of a running container as its own process sees it, with its volumes.
type ContainerFiles struct {
	*filecopy.Root
	// Owner is the user of the container's process.
	Owner filecopy.Owner
}

// Files opens the file system of a running container through its first process. It needs no program in the image. The
// caller must close it.
func (x *Sessions) Files(ctx context.Context, desired *podspec.Desired, container string) (*ContainerFiles, error) {
	id, err := x.running(ctx, desired, container)
	if err != nil {
		return nil, err
	}
	pid, err := x.client.Process(ctx, id)
	if err != nil {
		return nil, err
	}
	// The descriptor belongs to this process only. If the process ends and its number is reused, opening files through
	// the descriptor fails.
	proc, err := os.Open(fmt.Sprintf("/proc/%d", pid))
	if err != nil {
		return nil, unreachable(container, err)
	}
	files, err := filesOf(proc, container, id)
	return files, errors.Join(err, proc.Close())
}

// filesOf opens the files of a process, after a check that the process belongs to the container.
func filesOf(proc *os.File, container, id string) (*ContainerFiles, error) {
	owner, err := ownerOf(proc, id)
	if err != nil {
		return nil, fmt.Errorf("container %s: %w", container, err)
	}
	root, err := filecopy.OpenRoot(proc, "root")
	if err != nil {
		return nil, unreachable(container, err)
	}
	return &ContainerFiles{Root: root, Owner: owner}, nil
}

func unreachable(container string, err error) error {
	return fmt.Errorf("container %s: its files cannot be accessed: %w; "+
		"podctl must run as root in the pid namespace of the machine", container, err)
}

// ownerOf returns the user of a process. It checks that the process belongs to the container: its cgroup has the
// container's ID.
func ownerOf(proc *os.File, id string) (filecopy.Owner, error) {
	groups, err := readProc(proc, "cgroup")
	if err != nil || !inCgroupOf(groups, id) {
		return filecopy.Owner{}, errors.Join(
			errors.New("the process that the runtime reports does not belong to the container; "+
				"podctl must run in the pid namespace of the machine"),
			err,
		)
	}
	status, err := readProc(proc, "status")
	if err != nil {
		return filecopy.Owner{}, err
	}
	uid, uidErr := effectiveID(status, "Uid:")
	gid, gidErr := effectiveID(status, "Gid:")
	return filecopy.Owner{UID: uid, GID: gid}, errors.Join(uidErr, gidErr)
}

// inCgroupOf reports whether a process is in the cgroup of a container, or in one below it. An element of the path must
// be the ID, or have it between the runtime's prefix and ".scope" (systemd).
func inCgroupOf(groups, id string) bool {
	if id == "" {
		return false
	}
	separates := func(r rune) bool { return strings.ContainsRune("/:\n", r) }
	return slices.ContainsFunc(strings.FieldsFunc(groups, separates), func(element string) bool {
		name := strings.TrimSuffix(element, ".scope")
		return name == id || strings.HasSuffix(name, "-"+id)
	})
}

// effectiveID parses the effective ID in a line of a process's status: real, effective, saved, file system.
func effectiveID(status, name string) (int, error) {
	for line := range strings.Lines(status) {
		if fields := strings.Fields(line); len(fields) > 2 && fields[0] == name {
			return strconv.Atoi(fields[2])
		}
	}
	return 0, fmt.Errorf("the status of the container's process has no %q", name)
}

func readProc(proc *os.File, name string) (string, error) {
	fd, err := unix.Openat(int(proc.Fd()), name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", &os.PathError{Op: "open", Path: filepath.Join(proc.Name(), name), Err: err}
	}
	f := os.NewFile(uintptr(fd), name)
	text, err := io.ReadAll(f)
	return string(text), errors.Join(err, f.Close())
}
