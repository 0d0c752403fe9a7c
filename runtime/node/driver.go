package node

import (
	"fmt"
	"os"
	"path/filepath"
)

// The cgroup drivers of a node.
const (
	Systemd  = "systemd"
	Cgroupfs = "cgroupfs"
)

// cgroupDriver is the driver of a node that was there before. One of a podctl that did not
// remember it has Cgroupfs.
func (p *process) cgroupDriver() string {
	switch {
	case p == nil:
		return ""
	case p.CgroupDriver == "":
		return Cgroupfs
	}
	return p.CgroupDriver
}

// checkDriver refuses a driver that the node cannot have. One of a node that is there does not
// change: the cgroups of its pods are named by the driver.
func checkDriver(driver string, before *process) error {
	switch had := before.cgroupDriver(); {
	case driver == "" || driver == had:
		return nil
	case had != "":
		return fmt.Errorf("preparing the node: it has the cgroup driver %s, which does not change to %s while it is there; take it down first (podctl node down)", had, driver)
	case driver == Systemd && !hasSystemd("/"):
		return fmt.Errorf("preparing the node: the cgroup driver %s needs systemd, which does not run this machine", driver)
	}
	return nil
}

// usualDriver is the driver for a machine: systemd wants to be the only one that makes cgroups
// of version 2 (kubeadm takes it everywhere for that reason).
func usualDriver(root string) string {
	if _, err := os.Stat(filepath.Join(root, "sys/fs/cgroup/cgroup.controllers")); err == nil && hasSystemd(root) {
		return Systemd
	}
	return Cgroupfs
}

// hasSystemd reports whether systemd runs the machine (sd_booted).
func hasSystemd(root string) bool {
	info, err := os.Lstat(filepath.Join(root, "run/systemd/system"))
	return err == nil && info.IsDir()
}
