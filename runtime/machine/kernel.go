package machine

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/podctl/podctl/runtime/doctor"
)

// Kernel reads the features of the kernel below a root directory.
func Kernel(root string) doctor.Kernel {
	text := func(path string) string { return strings.TrimSpace(string(contents(filepath.Join(root, path)))) }
	limit, _ := strconv.Atoi(text("proc/sys/user/max_user_namespaces"))
	release := text("proc/sys/kernel/osrelease")
	return doctor.Kernel{
		Release:        release,
		Overlay:        strings.Contains(text("proc/filesystems")+"\n", "\toverlay\n"),
		Seccomp:        statusField(contents(filepath.Join(root, "proc/self/status")), "Seccomp") != "",
		Namespaces:     namespaces(filepath.Join(root, "proc/self/ns")),
		UserNamespaces: limit,
		Bridge: exists(filepath.Join(root, "sys/module/bridge")) ||
			exists(filepath.Join(root, "proc/sys/net/bridge")) ||
			strings.Contains(text(filepath.Join("lib/modules", release, "modules.builtin")), "/bridge.ko"),
		BridgeNetfilter: text("proc/sys/net/bridge/bridge-nf-call-iptables") == "1",
		IPForward:       text("proc/sys/net/ipv4/ip_forward") == "1",
		Systemd:         exists(filepath.Join(root, "run/systemd/system")),
	}
}

// namespaces lists the kinds of namespaces, without those for future children.
func namespaces(dir string) []string {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	var kinds []string
	for _, entry := range entries {
		if !strings.HasSuffix(entry.Name(), "_for_children") {
			kinds = append(kinds, entry.Name())
		}
	}
	return kinds
}

// statusField returns the value of a field of /proc/PID/status.
func statusField(status []byte, name string) string {
	for line := range strings.Lines(string(status)) {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// OwnProcess returns the permissions of podctl itself.
func OwnProcess() doctor.Process {
	return doctor.Process{UID: os.Geteuid(), Capabilities: statusField(contents("/proc/self/status"), "CapEff")}
}
