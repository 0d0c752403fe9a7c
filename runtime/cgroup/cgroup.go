package cgroup

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"
	"sync"

	"github.com/opencontainers/cgroups"
	"github.com/opencontainers/cgroups/manager"
)

// Ensure creates a pod's cgroup with its parents, unless it exists, and sets its limits. If the machine does not allow
// podctl to create cgroups, the error is an *UnavailableError; the containers of the pod can run without it. Ensure
// removes a cgroup whose limits it could not set. An existing cgroup that is not marked as unfinished
// (state.CgroupMark) is assumed to have its limits.
func (Machine) Ensure(name string, r Resources) error {
	t, err := findTree()
	if err != nil {
		return &UnavailableError{Path: name, Err: err}
	}
	return t.ensure(name, r)
}

func (t *tree) ensure(name string, r Resources) error {
	if err := checkName(name); err != nil {
		return err
	}
	if err := t.ensureTiers(above(name)); err != nil {
		return err
	}
	existed := t.exists(name)
	err := t.set(name, t.translate(r))
	if err != nil && !existed {
		return errors.Join(err, t.remove(context.Background(), name, nil))
	}
	if err == nil {
		t.reweigh(path.Dir(name))
	}
	return err
}

// Limit sets the limits of all pods together, whose cgroup is name. It creates this cgroup and those of the lower QoS
// classes in it, unless they exist, so that Ensure leaves the limits as they are. A nil value stays as it is. While the
// pods use more memory than the limit, nothing changes, and the error is an *InUseError.
func (Machine) Limit(name string, tiers []string, r Resources) error {
	t, err := findTree()
	if err != nil {
		return &UnavailableError{Path: name, Err: err}
	}
	if err := checkName(name); err != nil {
		return err
	}
	if used := usageIn(t, name).WorkingSet; used != nil && r.Memory != nil && *used > uint64(*r.Memory) {
		return &InUseError{Used: int64(*used), Limit: *r.Memory}
	}
	return t.limit(name, tiers, r)
}

// Exists reports whether a pod's cgroup exists, complete enough for a kubelet that takes the pod over (kubelet:
// cgroupManagerImpl.Exists).
func (Machine) Exists(name string) bool {
	t, err := findTree()
	return err == nil && checkName(name) == nil && t.exists(name)
}

// Remains reports whether any part of a pod's cgroup exists. With version 1, an interrupted removal may have removed it
// from some hierarchies only.
func (Machine) Remains(name string) bool {
	t, err := findTree()
	return err == nil && checkName(name) == nil && t.remains(name)
}

// Members returns the processes in a cgroup and those below it. A missing cgroup has none.
func (Machine) Members(name string) ([]int, error) {
	t, err := findTree()
	if err != nil {
		return nil, nil //nolint:nilerr // Without cgroups there is nothing in them.
	}
	if err := checkName(name); err != nil {
		return nil, err
	}
	return t.processes(name)
}

// Remove removes a pod's cgroup and empty ones below it. If processes run in it, it stays and the error is a
// *BusyError: only Destroy kills processes. A missing cgroup is not an error.
func (Machine) Remove(ctx context.Context, name string) error {
	t, err := findTree()
	if err != nil {
		return nil //nolint:nilerr // Without cgroups there is nothing to remove.
	}
	if err := checkName(name); err != nil {
		return err
	}
	if err := t.remove(ctx, name, nil); err != nil {
		return err
	}
	t.reweigh(path.Dir(name))
	return nil
}

// checkName refuses a path that is not a pod's cgroup, such as the root.
func checkName(name string) error {
	if !path.IsAbs(name) || path.Clean(name) != name || name == "/" {
		return fmt.Errorf("%q is not the path of a pod's cgroup", name)
	}
	return nil
}

// isSlice reports whether a path belongs to the systemd driver.
func isSlice(name string) bool { return strings.HasSuffix(name, ".slice") }

// config returns the library's description of a cgroup. The runtime manages devices, and setting limits requires no
// freezing.
func config(name string, r *cgroups.Resources) *cgroups.Cgroup {
	r.SkipDevices, r.SkipFreezeOnSet = true, true
	if !isSlice(name) {
		return &cgroups.Cgroup{Path: name, Resources: r}
	}
	parent := path.Base(path.Dir(name))
	if parent == "/" {
		parent = "-.slice"
	}
	return &cgroups.Cgroup{Systemd: true, Name: path.Base(name), Parent: parent, Resources: r}
}

// set creates a cgroup unless it exists, and sets its limits.
func (t *tree) set(name string, r *cgroups.Resources) error {
	m, err := manager.New(config(name, r))
	if err != nil {
		return &UnavailableError{Path: name, Err: err}
	}
	if err := m.Apply(-1); err != nil { // No process joins.
		return &UnavailableError{Path: name, Err: err}
	}
	oneSetter.Lock()
	defer oneSetter.Unlock()
	if err := m.Set(r); err != nil {
		return settingError(name, err)
	}
	return nil
}

// oneSetter lets one goroutine at a time set limits. The library's groups of cgroup version 1 are shared by the
// process, and Set of one of them stores the names of its files.
var oneSetter sync.Mutex //nolint:gochecknoglobals // What it guards is one for the process.
