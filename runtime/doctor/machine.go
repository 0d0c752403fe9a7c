package doctor

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// checkCgroups checks the kernel's and the runtime's side of cgroups.
func checkCgroups(f *Facts) Check {
	if f.Cgroups.Version == 0 {
		return failed("none are mounted", "mount them: mount -t cgroup2 none /sys/fs/cgroup")
	}
	found := fmt.Sprintf("version %d", f.Cgroups.Version)
	if driver := f.driver(); driver != "" {
		found += ", driver " + driver
	}
	missing := slices.DeleteFunc([]string{"cpu", "cpuset", "memory", "pids"}, func(c string) bool {
		return slices.Contains(f.Cgroups.Controllers, c)
	})
	switch {
	case f.driver() == "systemd" && !f.Kernel.Systemd:
		return failed(found+", and systemd does not run", "set SystemdCgroup = false in the runtime's configuration")
	case len(missing) > 0:
		return warning(fmt.Sprintf("%s, without the controllers %s", found, strings.Join(missing, ", ")),
			"such limits have no effect; add cgroup_enable=CONTROLLER to the kernel's command line")
	case !f.Cgroups.Writable:
		return warning(found+", not writable",
			"limits apply to containers but not to whole pods; mount cgroups writable where podctl runs")
	}
	return ok(found)
}

// driver returns the cgroup driver of the runtime. A runtime that does not report one uses cgroupfs, unless its
// configuration selects systemd.
func (f *Facts) driver() string {
	switch {
	case f.Runtime == nil || f.Runtime.Problem != "":
		return ""
	case f.Runtime.Driver != "":
		return f.Runtime.Driver
	case f.Runtime.SystemdCgroup:
		return "systemd"
	}
	return "cgroupfs"
}

// capability is a capability of the process, and what does not work without it.
type capability struct {
	bit     uint
	name    string
	without string
	fatal   bool
}

func capabilities() []capability {
	return []capability{
		{0, "CAP_CHOWN", "the owners of volumes cannot be changed", false},
		{1, "CAP_DAC_OVERRIDE", "files of other users cannot be written", false},
		{3, "CAP_FOWNER", "modes of volumes cannot be set", false},
		{12, "CAP_NET_ADMIN", "`podctl node up` cannot make a network", false},
		{21, "CAP_SYS_ADMIN", "volumes in memory and subPaths cannot be mounted", true},
		{24, "CAP_SYS_RESOURCE", "a node started here cannot protect guaranteed pods from the OOM killer", false},
	}
}

func checkCapabilities(f *Facts) Check {
	held, err := strconv.ParseUint(f.Process.Capabilities, 16, 64)
	if err != nil {
		return warning("the capabilities of this process cannot be read", "mount /proc")
	}
	var missing, without []string
	fatal := false
	for _, c := range capabilities() {
		if held&(1<<c.bit) == 0 {
			missing, without, fatal = append(missing, c.name), append(without, c.without), fatal || c.fatal
		}
	}
	switch {
	case len(missing) == 0:
		return ok("podctl has all that it needs")
	case f.Process.UID != 0 && fatal:
		return failed(fmt.Sprintf("podctl runs as user %d, without %s", f.Process.UID, strings.Join(missing, ", ")),
			"run podctl as root")
	}
	c := warning("without "+strings.Join(missing, ", "),
		"run podctl with the missing capabilities, or accept that "+strings.Join(without, "; "))
	if fatal {
		c.Result = Failed
	}
	return c
}

func checkOverlay(f *Facts) Check {
	if !f.Kernel.Overlay {
		return warning("not loaded in kernel "+f.Kernel.Release,
			"modprobe overlay; without it images need a slower snapshotter, such as native")
	}
	return ok("kernel " + f.Kernel.Release + " has it")
}

func checkSeccomp(f *Facts) Check {
	if !f.Kernel.Seccomp {
		return warning("the kernel does not have it",
			"pods with a seccompProfile do not start; use a kernel with CONFIG_SECCOMP_FILTER")
	}
	return ok("the kernel has it")
}

func checkNamespaces(f *Facts) Check {
	lacking := func(kinds ...string) string {
		return strings.Join(slices.DeleteFunc(kinds, func(k string) bool {
			return slices.Contains(f.Kernel.Namespaces, k)
		}), ", ")
	}
	if missing := lacking("ipc", "mnt", "net", "pid", "uts"); missing != "" {
		return failed("the kernel does not have "+missing,
			"use a kernel with these namespaces; if podctl runs in a container, allow it to create them")
	}
	if missing := lacking("cgroup", "user"); missing != "" {
		return warning("the kernel does not have "+missing, "pods with hostUsers: false do not start")
	}
	if f.Kernel.UserNamespaces == 0 {
		return warning("user namespaces are disabled",
			"sysctl -w user.max_user_namespaces=65536; pods with hostUsers: false do not start otherwise")
	}
	return ok("cgroup, ipc, mnt, net, pid, user, uts")
}

func checkBridge(f *Facts) Check {
	switch {
	case !f.Kernel.Bridge:
		return warning("the module bridge is not loaded", "modprobe bridge, unless your network needs none")
	case !f.Kernel.BridgeNetfilter:
		return warning("br_netfilter is not active",
			"modprobe br_netfilter; "+
				"sysctl -w net.bridge.bridge-nf-call-iptables=1; pods may not reach host ports of other pods")
	}
	return ok("bridge and br_netfilter are loaded")
}

func checkForwarding(f *Facts) Check {
	if !f.Kernel.IPForward {
		return warning("net.ipv4.ip_forward is 0",
			"sysctl -w net.ipv4.ip_forward=1; pods may not reach addresses outside this machine")
	}
	return ok("net.ipv4.ip_forward is 1")
}
