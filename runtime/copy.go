package runtime

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/filecopy"
)

// ContainerFiles is the file system of a running container as its own process sees
// it, with its volumes.
type ContainerFiles struct {
	*filecopy.Root
	// Owner is the user that the container's process runs as.
	Owner filecopy.Owner
}

// Files opens the file system of a running container, through its first process:
// nothing in the image is needed for it. The caller closes it.
func (e *Engine) Files(ctx context.Context, desired *podspec.Desired, container string) (*ContainerFiles, error) {
	id, err := e.running(ctx, desired, container)
	if err != nil {
		return nil, err
	}
	pid, err := e.processOf(ctx, id)
	if err != nil {
		return nil, err
	}
	proc := fmt.Sprintf("/proc/%d", pid)
	root, err := filecopy.OpenRoot(proc + "/root")
	if err != nil {
		return nil, fmt.Errorf("container %s: its files cannot be reached: %w; podctl has to run as root in the machine's own pid namespace", container, err)
	}
	// The root is held from here on; that it is the container's is checked after that,
	// since a number is given to another process once its own has ended.
	owner, err := ownerOf(proc, id)
	if err != nil {
		root.Close() //nolint:errcheck,gosec // nothing was written through it
		return nil, fmt.Errorf("container %s: %w", container, err)
	}
	return &ContainerFiles{Root: root, Owner: owner}, nil
}

// processOf asks the runtime for the number of a container's first process. The CRI
// has it among the details that each runtime tells in its own way; containerd and
// CRI-O agree on this one.
func (e *Engine) processOf(ctx context.Context, id string) (int, error) {
	reply, err := e.client.ContainerStatus(ctx, &runtimeapi.ContainerStatusRequest{ContainerId: id, Verbose: true})
	if err != nil {
		return 0, err
	}
	var info struct {
		PID int `json:"pid"`
	}
	if err := json.Unmarshal([]byte(reply.GetInfo()["info"]), &info); err != nil || info.PID == 0 {
		return 0, fmt.Errorf("the runtime at %s does not tell which process container %s is", e.client.Endpoint, id)
	}
	return info.PID, nil
}

// ownerOf reads who a process runs as, and makes sure that it is the container's: its
// cgroup bears the container's id.
func ownerOf(proc, id string) (filecopy.Owner, error) {
	groups, err := os.ReadFile(proc + "/cgroup")
	if err != nil || !bytes.Contains(groups, []byte(id)) {
		return filecopy.Owner{}, fmt.Errorf("the process that the runtime names is not the container's; does podctl run in the machine's own pid namespace? (%w)", os.ErrNotExist)
	}
	status, err := os.ReadFile(proc + "/status")
	if err != nil {
		return filecopy.Owner{}, err
	}
	ids := map[string]int{}
	for lines := bufio.NewScanner(bytes.NewReader(status)); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if len(fields) > 2 && (fields[0] == "Uid:" || fields[0] == "Gid:") {
			// Real, effective, saved, file system.
			if ids[fields[0]], err = strconv.Atoi(fields[2]); err != nil {
				return filecopy.Owner{}, fmt.Errorf("reading %s/status: %w", proc, err)
			}
		}
	}
	return filecopy.Owner{UID: ids["Uid:"], GID: ids["Gid:"]}, nil
}
