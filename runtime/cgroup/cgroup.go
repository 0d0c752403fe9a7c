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

// Ensure creates a pod's cgroup if it is not there, with those above it, and sets
// its limits. Where the machine does not let podctl make cgroups the error is an
// *UnavailableError: the pod can run without, as far as its containers go. A
// cgroup that could not get its limits is not left behind, for what exists and is not
// marked as unfinished (state.CgroupMark) is taken to have them.
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
	for _, tier := range above(name) {
		if err := t.ensureTier(tier); err != nil {
			return err
		}
	}
	existed := t.exists(name)
	err := t.set(name, t.translate(r))
	if err != nil && !existed {
		return errors.Join(err, t.remove(context.Background(), name))
	}
	if err == nil {
		t.reweigh(path.Dir(name))
	}
	return err
}

// Exists reports whether a pod's cgroup is there, complete enough for a kubelet
// that takes the pod over (kubelet: cgroupManagerImpl.Exists).
func (Machine) Exists(name string) bool {
	t, err := findTree()
	return err == nil && checkName(name) == nil && t.exists(name)
}

// Remains reports whether any part of a pod's cgroup is there. With version 1 a removal that was
// cut off has removed it from some hierarchies only.
func (Machine) Remains(name string) bool {
	t, err := findTree()
	return err == nil && checkName(name) == nil && t.remains(name)
}

// Members lists the processes in a cgroup and in those below it. One that is not there has none.
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

// Remove removes a pod's cgroup with the empty ones below it. One in which
// processes run stays, and is a *BusyError; none is ever killed. One that is not
// there is no error.
func (Machine) Remove(ctx context.Context, name string) error {
	t, err := findTree()
	if err != nil {
		return nil //nolint:nilerr // Without cgroups there is nothing to remove.
	}
	if err := checkName(name); err != nil {
		return err
	}
	if err := t.remove(ctx, name); err != nil {
		return err
	}
	t.reweigh(path.Dir(name))
	return nil
}

// checkName refuses what is no cgroup of a pod: nobody means the root of all.
func checkName(name string) error {
	if !path.IsAbs(name) || path.Clean(name) != name || name == "/" {
		return fmt.Errorf("%q is not the path of a pod's cgroup", name)
	}
	return nil
}

// isSlice reports whether a path is one of the systemd driver.
func isSlice(name string) bool { return strings.HasSuffix(name, ".slice") }

// config is a cgroup in the library's words. Devices are the runtime's matter,
// and nothing has to be frozen to set limits.
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

// set creates a cgroup if it is not there and sets what is given.
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

// oneSetter lets one goroutine at a time set limits: the library's groups of cgroup version 1
// belong to the process, and one of them remembers in Set how its files are named.
var oneSetter sync.Mutex //nolint:gochecknoglobals // What it guards is one for the process.
