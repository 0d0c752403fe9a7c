package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/podctl/podctl/runtime/safefs"
)

// programs holds the external programs that a node needs.
type programs struct{ containerd, cni string }

// MissingError reports a missing program and the package that has it.
type MissingError struct{ Program, Package string }

// Error names the package to install.
func (e *MissingError) Error() string {
	return fmt.Sprintf("%s is missing; on Debian and Ubuntu: apt-get install %s", e.Program, e.Package)
}

// findPrograms finds all programs that a node needs, and reports all missing ones at once.
func findPrograms(containerd string) (programs, error) {
	var errs []error
	found := programs{cni: cniDir()}
	var err error
	if found.containerd, err = findContainerd(cmp.Or(containerd, "containerd")); err != nil {
		errs = append(errs, err)
	}
	for _, program := range []string{"runc", "iptables"} {
		if _, err := lookPath(program, program); err != nil {
			errs = append(errs, err)
		}
	}
	if found.cni == "" {
		errs = append(errs, &MissingError{Program: "the CNI plugin bridge", Package: "containernetworking-plugins"})
	}
	return found, errors.Join(errs...)
}

// findContainerd finds the program by a path from the user, or by its name.
func findContainerd(containerd string) (string, error) {
	if !strings.Contains(containerd, "/") {
		return lookPath(containerd, "containerd")
	}
	path, err := filepath.Abs(containerd)
	if err != nil {
		return "", err
	}
	return pathOf(safefs.OpenProgram(path))(containerd, "containerd")
}

// pathOf returns the path of a program that was searched, or a *MissingError with the package that has it.
func pathOf(found *safefs.Program, err error) func(program, from string) (string, error) {
	return func(program, from string) (string, error) {
		if errors.Is(err, exec.ErrNotFound) {
			return "", &MissingError{Program: program, Package: from}
		}
		if err != nil {
			return "", fmt.Errorf("looking for %s: %w", program, err)
		}
		return found.Path, found.Close()
	}
}

// adminDirs returns the directories of administration programs such as iptables. They are not in PATH for every root,
// for example not after su or in a cron job.
func adminDirs() []string { return []string{"/usr/sbin", "/sbin"} }

// lookPath finds a program in PATH or in adminDirs. It returns a *MissingError with the package that has the program.
// It refuses a program that another user could have put there.
func lookPath(program, from string) (string, error) {
	return pathOf(safefs.LookPath(program, withAdminDirs(os.Getenv("PATH"))))(program, from)
}

// withAdminDirs returns the absolute directories of a PATH with those of adminDirs.
func withAdminDirs(path string) string {
	dirs := filepath.SplitList(safefs.AbsolutePath(path))
	for _, dir := range adminDirs() {
		if !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
	}
	return strings.Join(dirs, string(filepath.ListSeparator))
}

// searchPath returns the PATH for a containerd: its shim is usually in the same directory, and its CNI plugins look for
// iptables.
func searchPath(program string) string {
	return filepath.Dir(program) + string(filepath.ListSeparator) + withAdminDirs(os.Getenv("PATH"))
}

// containerdVariables lists the variables that containerd, its shims and runc read, besides HOME, the proxies and the
// certificates.
func containerdVariables() []string {
	return []string{
		"container",            // set in a container, in which AppArmor is the host's
		"ENABLE_CRI_SANDBOXES", // selects one of two implementations in containerd 1.7
		"SCHED_CORE",           // core scheduling for containers
		"CONTAINERD_DISABLE_PIGZ", "CONTAINERD_DISABLE_IGZIP",
	}
}

// environ returns the environment of the node's containerd, which passes it on to shims and CNI plugins. It omits all
// other variables of the caller, for example passwords.
func environ(program string) []string {
	return append(safefs.Environ(containerdVariables()...), "PATH="+searchPath(program))
}

// cniDir returns the directory of the CNI plugins: that of a distribution, or the upstream one.
func cniDir() string {
	for _, dir := range []string{"/usr/lib/cni", "/opt/cni/bin", "/usr/libexec/cni"} {
		if _, err := os.Stat(filepath.Join(dir, "bridge")); err == nil {
			return dir
		}
	}
	return ""
}

// release is a version of containerd.
type release struct {
	major int
	text  string
}

func (r release) String() string { return r.text }

func containerdVersion(ctx context.Context, program string) (release, error) {
	checked, err := safefs.OpenProgram(program)
	if err != nil {
		return release{}, fmt.Errorf("asking containerd for its version: %w", err)
	}
	defer checked.Close() //nolint:errcheck // A handle on a program.
	cmd := checked.Command(ctx, "--version")
	cmd.Dir, cmd.Env = "/", environ(program)
	out, err := cmd.Output()
	if err != nil {
		return release{}, fmt.Errorf("asking %s for its version: %w", program, err)
	}
	return parseVersion(string(out))
}

// parseVersion parses the output of `containerd --version`. A build without a version counts as current.
func parseVersion(text string) (release, error) {
	fields := strings.Fields(text)
	if len(fields) < 3 || fields[0] != "containerd" {
		return release{}, fmt.Errorf("not a containerd: it calls itself %q", strings.TrimSpace(text))
	}
	m := regexp.MustCompile(`v?(\d+)\.\d+[^ ]*`).FindStringSubmatch(fields[2])
	if m == nil {
		return release{major: 2, text: fields[2]}, nil
	}
	major, err := strconv.Atoi(m[1])
	return release{major: major, text: m[0]}, err
}

// facts describes what the machine supports.
type facts struct {
	restrictOOM bool
	snapshotter string
}

func machineFacts(l layout) facts {
	f := facts{restrictOOM: !hasCapability(unix.CAP_SYS_RESOURCE), snapshotter: "native"}
	if overlayWorks(l.path("overlay-test")) {
		f.snapshotter = "overlayfs"
	}
	return f
}

// hasCapability reports whether this process has an effective capability.
func hasCapability(capability int) bool {
	var sets [2]unix.CapUserData
	err := unix.Capget(&unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, &sets[0])
	return err == nil && sets[capability/32].Effective&(1<<(capability%32)) != 0
}

// overlayWorks tries an overlay mount below the node's directory.
func overlayWorks(dir string) bool {
	merged := filepath.Join(dir, "merged")
	for unix.Unmount(merged, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW) == nil {
		// Remove the mount of a podctl that was killed during this check.
	}
	if err := os.RemoveAll(dir); err != nil {
		return false
	}
	defer os.RemoveAll(dir) //nolint:errcheck // a try leaves at most an empty directory
	for _, sub := range []string{"lower", "upper", "work", "merged"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o700); err != nil {
			return false
		}
	}
	options := fmt.Sprintf("lowerdir=%s/lower,upperdir=%s/upper,workdir=%s/work", dir, dir, dir)
	if err := unix.Mount("overlay", merged, "overlay", 0, options); err != nil {
		return false
	}
	return unix.Unmount(merged, 0) == nil
}
