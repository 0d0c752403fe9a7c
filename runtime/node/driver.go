package node

import (
	"fmt"
	"os"
	"path/filepath"
)

// Cgroup drivers of a node.
const (
	Systemd  = "systemd"
	Cgroupfs = "cgroupfs"
)

// cgroupDriver returns the driver of an existing node. A node without a recorded driver has Cgroupfs.
func (p *process) cgroupDriver() string {
	switch {
	case p == nil:
		return ""
	case p.CgroupDriver == "":
		return Cgroupfs
	}
	return p.CgroupDriver
}

// checkDriver refuses a driver that the node cannot use. The driver of an existing node cannot change, because the
// names of its pods' cgroups depend on it.
func checkDriver(driver string, before *process) error {
	switch had := before.cgroupDriver(); {
	case driver == "" || driver == had:
		return nil
	case had != "":
		return fmt.Errorf("preparing the node: it has the cgroup driver %s, "+
			"which cannot change to %s while the node exists; take it down first (podctl node down)", had, driver)
	case driver == Systemd && !hasSystemd("/"):
		return fmt.Errorf("preparing the node: the cgroup driver %s needs systemd, which does not run on this machine",
			driver)
	}
	return nil
}

// usualDriver returns the default driver for a machine. With cgroup v2, systemd must be the only program that creates
// cgroups (for that reason kubeadm always selects it).
func usualDriver(root string) string {
	if _, err := os.Stat(filepath.Join(root, "sys/fs/cgroup/cgroup.controllers")); err == nil && hasSystemd(root) {
		return Systemd
	}
	return Cgroupfs
}

// hasSystemd reports whether the machine runs systemd (sd_booted).
func hasSystemd(root string) bool {
	info, err := os.Lstat(filepath.Join(root, "run/systemd/system"))
	return err == nil && info.IsDir()
}
