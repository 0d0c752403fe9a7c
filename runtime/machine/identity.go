package machine

import (
	"cmp"
	"io"
	"os"
	"path/filepath"
	"strings"
	"unicode"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"
)

// Identity identifies a machine and its system, as a Node shows it. Values that cannot be read are empty.
type Identity struct {
	// MachineID belongs to the installation, SystemUUID to the hardware, and BootID to one start of the kernel.
	MachineID, SystemUUID, BootID string
	// KernelVersion is the release of the kernel. OSImage is the name of the distribution.
	KernelVersion, OSImage string
	// SwapBytes is the size of the swap space.
	SwapBytes int64
}

// IdentityOf reads the identity of the machine below a root directory, from the files that a kubelet reads (cadvisor:
// MachineInfo, VersionInfo).
func IdentityOf(root string) Identity {
	first := func(paths ...string) string {
		for _, path := range paths {
			if value := line(string(start(filepath.Join(root, path)))); value != "" {
				return value
			}
		}
		return ""
	}
	return Identity{
		MachineID: first("etc/machine-id", "var/lib/dbus/machine-id"),
		SystemUUID: first("sys/class/dmi/id/product_uuid", "proc/device-tree/system-id", "proc/device-tree/vm,uuid",
			"etc/machine-id"),
		BootID:        BootID(root),
		KernelVersion: first("proc/sys/kernel/osrelease"),
		OSImage: cmp.Or(distribution(string(start(filepath.Join(root, "etc/os-release")))),
			distribution(string(start(filepath.Join(root, "usr/lib/os-release")))), "Linux"),
		SwapBytes: swapTotal(filepath.Join(root, "proc")),
	}
}

// identityMax limits the bytes that are read of each file, and identityLine those of a value.
const (
	identityMax  = 64 << 10
	identityLine = 256
)

// start returns the start of a regular file.
func start(path string) []byte {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil
	}
	defer f.Close() //nolint:errcheck // it was only read
	if info, statErr := f.Stat(); statErr != nil || !info.Mode().IsRegular() {
		return nil
	}
	text, err := io.ReadAll(io.LimitReader(f, identityMax))
	if err != nil {
		return nil
	}
	return text
}

// line returns the first line of a text without characters that cannot be printed.
func line(text string) string {
	text, _, _ = strings.Cut(strings.TrimSpace(text), "\n")
	text = strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) && r != unicode.ReplacementChar {
			return r
		}
		return -1
	}, text[:min(len(text), identityLine)])
	return strings.TrimSpace(text)
}

// distribution returns PRETTY_NAME of a file os-release.
func distribution(release string) string {
	for entry := range strings.Lines(release) {
		if name, ok := strings.CutPrefix(strings.TrimSpace(entry), "PRETTY_NAME="); ok {
			return line(strings.Trim(name, `"'`))
		}
	}
	return ""
}

func swapTotal(proc string) int64 {
	return meminfo(proc, func(info *procfs.Meminfo) *uint64 { return info.SwapTotalBytes })
}
