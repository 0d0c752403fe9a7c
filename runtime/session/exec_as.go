package session

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"slices"
	"strings"

	"github.com/moby/sys/user"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/containerd"
	"github.com/podctl/podctl/runtime/remote"
)

// target is the container in which a command runs.
type target struct {
	pod      *podspec.Desired
	name, id string
}

// execAs runs a command as another user, in another directory or with other variables. The CRI has no fields for them.
// Therefore execAs uses containerd's own API in the way containerd's CRI does for an exec.
func (x *Sessions) execAs(ctx context.Context, in *target, command *Command, s *remote.Streams) (err error) {
	p := &containerd.Process{
		Args: command.Args, Dir: command.Dir, Env: command.Env,
		Terminal: s.Terminal, In: s.In, Out: s.Out, Err: s.Err, Resize: resizes(s),
	}
	if command.User != "" {
		if p.User, err = x.userOf(ctx, in.pod, in.name, command.User); err != nil {
			return err
		}
	}
	socket := x.client.Endpoint.Socket()
	if socket == "" {
		return errNeedsContainerd
	}
	store, err := containerd.OpenStore(socket)
	if err != nil {
		return err
	}
	code := 0
	err = remote.Guard(ctx, s, func(ctx context.Context, s *remote.Streams) (err error) {
		p.Out, p.Err = s.Out, s.Err
		code, err = store.Exec(ctx, in.id, p)
		return err
	})
	if refused := (*containerd.NotContainerdError)(nil); errors.As(err, &refused) {
		err = errNeedsContainerd
	}
	if err = errors.Join(err, store.Close()); err == nil && code != 0 {
		return &remote.ExitError{Code: code}
	}
	return err
}

var errNeedsContainerd = errors.New(
	"another user, directory or variables need containerd: the CRI has no fields for them",
)

// resizes returns a function that waits for the next size of the user's terminal.
func resizes(s *remote.Streams) func() (width, height uint16, ok bool) {
	if s.Resize == nil {
		return nil
	}
	return func() (width, height uint16, ok bool) {
		size := s.Resize.Next()
		if size == nil {
			return 0, 0, false
		}
		return size.Width, size.Height, true
	}
}

// maxAccounts limits how much of a container's lists of users and groups is read, in bytes.
const maxAccounts = 4 << 20

// userOf finds a user in the container's own lists. As in docker, the user has the groups from these lists, and also
// those that the manifest gives to all processes of the pod.
func (x *Sessions) userOf(
	ctx context.Context, desired *podspec.Desired, container, name string,
) (*containerd.User, error) {
	files, err := x.Files(ctx, desired, container)
	if err != nil {
		return nil, err
	}
	defer files.Close() //nolint:errcheck // files that were only read
	passwd, err := readAccounts(files, "/etc/passwd")
	if err != nil {
		return nil, err
	}
	group, err := readAccounts(files, "/etc/group")
	if err != nil {
		return nil, err
	}
	return findUser(name, passwd, group, podGroups(desired))
}

// findUser finds a user in the lists, and adds groups to the user's own.
func findUser(name, passwd, group string, groups []int) (*containerd.User, error) {
	found, err := user.GetExecUser(name, nil, strings.NewReader(passwd), strings.NewReader(group))
	if err != nil {
		return nil, err
	}
	made := &containerd.User{UID: uint32(found.Uid), GID: uint32(found.Gid)} // their range is checked
	for _, gid := range append(found.Sgids, groups...) {
		if id := uint32(gid); !slices.Contains(made.AdditionalGroups, id) { // likewise
			made.AdditionalGroups = append(made.AdditionalGroups, id)
		}
	}
	return made, nil
}

// readAccounts reads a list of users or groups of a container. A missing list is empty.
func readAccounts(files *ContainerFiles, name string) (string, error) {
	f, err := files.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	defer f.Close() //nolint:errcheck // a file that was only read
	text, err := io.ReadAll(io.LimitReader(f, maxAccounts))
	return string(text), err
}

// podGroups returns the groups of all processes of a pod. They give access to its volumes.
func podGroups(desired *podspec.Desired) (groups []int) {
	c := desired.Pod.Spec.SecurityContext
	if c == nil {
		return nil
	}
	for _, gid := range c.SupplementalGroups {
		groups = append(groups, int(gid))
	}
	if c.FSGroup != nil {
		groups = append(groups, int(*c.FSGroup))
	}
	return groups
}
