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

// programs are the programs of others that a node needs.
type programs struct{ containerd, cni string }

// MissingError says that a program is missing, and which package has it.
type MissingError struct{ Program, Package string }

// Error says what to install.
func (e *MissingError) Error() string {
	return fmt.Sprintf("%s is missing; on Debian and Ubuntu: apt-get install %s", e.Program, e.Package)
}

// findPrograms looks for everything a node needs, and reports all that is
// missing at once.
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

// findContainerd finds the program by its path, which the user gave, or by its name.
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

// pathOf returns the path of a program that was looked for, or a *MissingError with the package that has it.
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

// adminDirs hold programs for the administrator, iptables for one. Not every root has them
// in PATH: not one who came by su, and not a cron job.
func adminDirs() []string { return []string{"/usr/sbin", "/sbin"} }

// lookPath finds a program in PATH, or where those for the administrator are. It returns a
// *MissingError with the package that has the program, and refuses what another user could
// have put there.
func lookPath(program, from string) (string, error) {
	return pathOf(safefs.LookPath(program, withAdminDirs(os.Getenv("PATH"))))(program, from)
}

// withAdminDirs is a PATH of absolute directories, with those for the administrator.
func withAdminDirs(path string) string {
	dirs := filepath.SplitList(safefs.AbsolutePath(path))
	for _, dir := range adminDirs() {
		if !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
	}
	return strings.Join(dirs, string(filepath.ListSeparator))
}

// searchPath is the PATH of a containerd: its shim lies beside it as a rule, and its CNI
// plugins look for iptables.
func searchPath(program string) string {
	return filepath.Dir(program) + string(filepath.ListSeparator) + withAdminDirs(os.Getenv("PATH"))
}

// containerdVariables are what containerd, its shims and runc read of the environment, beside
// HOME, the proxies and the certificates.
func containerdVariables() []string {
	return []string{
		"container",            // set in a container: AppArmor is the host's
		"ENABLE_CRI_SANDBOXES", // which of two implementations containerd 1.7 takes
		"SCHED_CORE",           // core scheduling for containers
		"CONTAINERD_DISABLE_PIGZ", "CONTAINERD_DISABLE_IGZIP",
	}
}

// environ is the environment of the node's containerd, which hands it on to shims and CNI
// plugins. What else the caller has in his, passwords for one, is not theirs.
func environ(program string) []string {
	return append(safefs.Environ(containerdVariables()...), "PATH="+searchPath(program))
}

// cniDir is where the CNI plugins lie: a distribution's place, or the upstream
// one.
func cniDir() string {
	for _, dir := range []string{"/usr/lib/cni", "/opt/cni/bin", "/usr/libexec/cni"} {
		if _, err := os.Stat(filepath.Join(dir, "bridge")); err == nil {
			return dir
		}
	}
	return ""
}

// release is a containerd's version.
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

// parseVersion reads what `containerd --version` prints. A build without a
// version is taken to be current.
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

// facts is what the machine can and cannot do.
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

// hasCapability reports whether a capability is in force in this process.
func hasCapability(capability int) bool {
	var sets [2]unix.CapUserData
	err := unix.Capget(&unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, &sets[0])
	return err == nil && sets[capability/32].Effective&(1<<(capability%32)) != 0
}

// overlayWorks tries an overlay mount where the node's files will lie.
func overlayWorks(dir string) bool {
	merged := filepath.Join(dir, "merged")
	for unix.Unmount(merged, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW) == nil {
		// Somebody ended a podctl during its try, and left the mount.
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
