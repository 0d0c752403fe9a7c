package node

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// TestConfig compares the configuration with the files in testdata, one per version of the format.
func TestConfig(t *testing.T) {
	in := configInput{
		layout:       "/state/node",
		sandboxImage: "registry.local/podctl/pause:1",
		cniBin:       "/usr/lib/cni",
		restrictOOM:  true,
		snapshotter:  "overlayfs",
	}
	for major, file := range map[int]string{1: "config-v2.toml", 2: "config-v3.toml"} {
		want, err := os.ReadFile(filepath.Join("testdata", file))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), configFor(major, in)); diff != "" {
			t.Errorf("%s (-want +got)\n%s", file, diff)
		}
	}
}

func TestParseVersion(t *testing.T) {
	cases := map[string]struct {
		text, want string
		major      int
	}{
		"Debian's":         {"containerd github.com/containerd/containerd 1.6.20~ds1 1.6.20~ds1-1+deb12u1", "1.6.20~ds1", 1},
		"upstream's":       {"containerd github.com/containerd/containerd v1.7.24 88bf19b2", "v1.7.24", 1},
		"current":          {"containerd github.com/containerd/containerd/v2 2.4.2+unknown ", "2.4.2+unknown", 2},
		"without a number": {"containerd github.com/containerd/containerd/v2 main abc", "main", 2},
	}
	for name, c := range cases {
		if r, err := parseVersion(c.text); err != nil || r.text != c.want || r.major != c.major {
			t.Errorf("%s: %+v %v", name, r, err)
		}
	}
	if _, err := parseVersion("runc version 1.1.5"); err == nil {
		t.Error("another program was taken for containerd")
	}
}

func TestFreeSubnetAvoidsUsedNetworks(t *testing.T) {
	used := []netip.Prefix{
		netip.MustParsePrefix("10.89.7.0/24"), netip.MustParsePrefix("10.89.8.128/25"),
		netip.MustParsePrefix("192.168.0.0/16"),
	}
	if got, err := freeSubnet(used, 7); err != nil || got.String() != "10.89.9.0/24" {
		t.Errorf("%s %v", got, err)
	}
	if _, err := freeSubnet([]netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}, 0); err == nil {
		t.Error("a subnet was found where none is free")
	}
}

func TestParseRoutes(t *testing.T) {
	text := "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\n" +
		"eth0\t00000000\t0100000A\t0003\t0\t0\t0\t00000000\t0\t0\t0\n" +
		"cni0\t00585A0A\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0\n"
	if got := parseRoutes(text); len(got) != 1 || got[0].String() != "10.90.88.0/24" {
		t.Errorf("%v", got)
	}
}

func TestHasCapability(t *testing.T) {
	status, err := os.ReadFile("/proc/thread-self/status")
	if err != nil {
		t.Fatal(err)
	}
	_, line, _ := strings.Cut(string(status), "CapEff:")
	var held uint64
	if _, err := fmt.Sscanf(line, "%x", &held); err != nil {
		t.Fatal(err)
	}
	for capability := range unix.CAP_LAST_CAP + 1 {
		if want := held&(1<<capability) != 0; hasCapability(capability) != want {
			t.Errorf("capability %d: %t, and the kernel shows the opposite", capability, !want)
		}
	}
}

func TestIsShimCommand(t *testing.T) {
	shim := func(socket string) []string {
		return []string{"/usr/bin/containerd-shim-runc-v2", "-namespace", "k8s.io", "-address", socket}
	}
	if !isShimCommand(shim("/a/containerd.sock"), "/a/containerd.sock") {
		t.Error("our shim was not recognised")
	}
	if isShimCommand(shim("/b/containerd.sock"), "/a/containerd.sock") ||
		isShimCommand([]string{"vi", "/a/containerd.sock"}, "/a/containerd.sock") || isShimCommand(nil, "") {
		t.Error("a process of another program was treated as our shim")
	}
}

// needsRoot skips a test that must act as another user.
func needsRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can act as another user")
	}
}

const foreignUID = 65534

// script writes a program.
func script(t *testing.T, path, text string) {
	t.Helper()
	err := os.MkdirAll(filepath.Dir(path), 0o755)
	if err = errors.Join(err, os.WriteFile(path, []byte("#!/bin/sh\n"+text), 0o600), os.Chmod(path, 0o755)); err != nil {
		t.Fatal(err)
	}
}

// TestOnlyShimsAreKilled checks that a process that only calls itself a shim of the node, and one of another user, are
// not killed.
func TestOnlyShimsAreKilled(t *testing.T) {
	needsRoot(t)
	dir, err := os.MkdirTemp("/tmp", "podctl-shim-") //nolint:usetesting // another user runs programs in it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	l := layout(filepath.Join(dir, "node"))
	shell, err := os.ReadFile("/bin/sh")
	shim := filepath.Join(dir, "containerd-shim-test-v2")
	if err = errors.Join(err, os.WriteFile(shim, shell, 0o600), os.Chmod(shim, 0o755), os.Chmod(dir, 0o755)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, program string
		user          uint32
		socket        string
		killed        bool
	}{
		{"a shim", shim, 0, l.socket(), true},
		{"a shim of another node", shim, 0, l.socket() + "2", false},
		{"another program", "/bin/sh", 0, l.socket(), false},
		{"another user's", shim, foreignUID, l.socket(), false},
	} {
		cmd := exec.CommandContext(t.Context(), c.program)
		cmd.Args = []string{"containerd-shim-test-v2", "-c", "echo begun; read -r line; exit 7", "-address", c.socket}
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: c.user, Gid: c.user}}
		in, inErr := cmd.StdinPipe()
		out, outErr := cmd.StdoutPipe()
		if err := errors.Join(inErr, outErr, cmd.Start()); err != nil {
			t.Fatal(c.name, err)
		}
		_, readErr := out.Read(make([]byte, 5))
		if err := errors.Join(readErr, killShims(l)); err != nil {
			t.Error(c.name, err)
		}
		_ = in.Close()
		if err := cmd.Wait(); (cmd.ProcessState.ExitCode() == -1) != c.killed {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// TestContainerdEnvironment checks that containerd, which passes its environment on, gets only the variables it needs
// and does not depend on the caller's directory.
func TestContainerdEnvironment(t *testing.T) {
	l := layout(filepath.Join(t.TempDir(), "node"))
	if err := l.prepare(); err != nil {
		t.Fatal(err)
	}
	program := l.path("bin", "containerd")
	script(t, program, `{ env; echo "directory=$PWD"; } >"$0.$1.part" && mv "$0.$1.part" "$0.$1"; echo containerd c 2.4.2 x`+"\n")
	t.Setenv("REGISTRY_PASSWORD", "s3cret")
	t.Setenv("LD_LIBRARY_PATH", "/evil")
	t.Setenv("PATH", ".:/bin::bin:/usr/bin")
	t.Setenv("https_proxy", "http://proxy:1")
	t.Setenv("TMPDIR", "relative")
	t.Chdir(t.TempDir())
	if _, err := containerdVersion(t.Context(), program); err != nil {
		t.Fatal(err)
	}
	if _, err := start(l, process{Program: program}); err != nil {
		t.Fatal(err)
	}
	for _, flag := range []string{"--version", "--config"} {
		var text []byte
		for err := os.ErrNotExist; errors.Is(err, os.ErrNotExist) && t.Context().Err() == nil; time.Sleep(time.Millisecond) {
			text, err = os.ReadFile(program + "." + flag)
		}
		lines := strings.Split(string(text), "\n")
		for _, want := range []string{
			"https_proxy=http://proxy:1",
			"directory=/",
			"PATH=" + filepath.Dir(program) + ":/bin:/usr/bin:/usr/sbin:/sbin",
		} {
			if !slices.Contains(lines, want) {
				t.Errorf("containerd %s: %s is missing in\n%s", flag, want, text)
			}
		}
		for _, secret := range []string{"s3cret", "/evil", "TMPDIR"} {
			if strings.Contains(string(text), secret) {
				t.Errorf("containerd %s: %s is in\n%s", flag, secret, text)
			}
		}
	}
}

// TestNodeOfAnotherUser checks that a node's files written by another user are not trusted, because they name the
// program to start as containerd.
func TestNodeOfAnotherUser(t *testing.T) {
	needsRoot(t)
	for _, his := range []string{"state", "state/node"} {
		for name, act := range map[string]func(Options) error{
			"up":     func(o Options) error { _, err := Up(t.Context(), o); return err },
			"down":   func(o Options) error { return Down(t.Context(), o) },
			"status": func(o Options) error { _, err := Get(t.Context(), o.Dir); return err },
		} {
			dir := t.TempDir()
			l := layout(filepath.Join(dir, "state", "node"))
			if err := l.prepare(); err != nil {
				t.Fatal(err)
			}
			evil := filepath.Join(dir, "evil")
			script(t, evil, ": >"+dir+"/ran\necho containerd c 2.4.2 x\n")
			err := (&process{PID: 1 << 30, Program: evil}).remember(l)
			for _, path := range []string{his, "state/node"} {
				err = errors.Join(err, os.Chown(filepath.Join(dir, path), foreignUID, foreignUID))
			}
			if err != nil {
				t.Fatal(err)
			}
			if err := act(Options{Dir: string(l)}); err == nil || !strings.Contains(err.Error(), "belongs to user 65534") {
				t.Errorf("%s, %s is his: %v", name, his, err)
			}
			if _, err := os.Stat(filepath.Join(dir, "ran")); err == nil {
				t.Errorf("%s, %s is his: his program was run", name, his)
			}
		}
	}
}

func TestProcessIsRecognised(t *testing.T) {
	ticks, state := startTicks(os.Getpid())
	if ticks == 0 || state == "" {
		t.Fatal("this process was not found")
	}
	p := process{PID: os.Getpid(), StartTicks: ticks}
	if p.alive(layout("/no/such/node")) {
		t.Error("a process with another command line was taken for the node's")
	}
	if ticks, _ := startTicks(1 << 30); ticks != 0 {
		t.Error("a process that does not exist was found")
	}
}

// TestProcessIsRemembered checks that the record of a process is read again, and that a service manager finds its pid.
func TestProcessIsRemembered(t *testing.T) {
	l := layout(t.TempDir())
	want := process{
		PID: 4194304, StartTicks: 7, Version: "2.4.2", Program: "/opt/containerd", SandboxImage: "i:1",
		Subnet: "10.89.0.0/24", Bridge: "podctl0",
	}
	if err := want.remember(l); err != nil {
		t.Fatal(err)
	}
	got, running, err := readProcess(l)
	if err != nil || running {
		t.Fatal(running, err)
	}
	if diff := cmp.Diff(&want, got, cmp.AllowUnexported(process{})); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if text, err := os.ReadFile(l.path("containerd.pid")); err != nil || string(text) != "4194304\n" {
		t.Errorf("%q %v", text, err)
	}
}

// TestStartedProcessIsFound checks that a node is found if podctl is killed after it started containerd and before it
// recorded the process. The previous record is kept.
func TestStartedProcessIsFound(t *testing.T) {
	l := layout(t.TempDir())
	begun := process{Program: "/bin/sh"}
	if err := errors.Join(os.WriteFile(l.pidFile(), []byte("7"), 0o600), begun.announce(l)); err != nil {
		t.Fatal(err)
	}
	if p, running, err := readProcess(l); running || err != nil || p.PID != 0 || p.Program != "/bin/sh" {
		t.Fatalf("before its start: %+v, %t, %v", p, running, err)
	}
	if _, err := os.Stat(l.pidFile()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the number of the process before is left: %v", err)
	}
	begun.PID, begun.StartTicks = 7, 7
	if err := errors.Join(begun.remember(l), (&process{Program: "/other"}).announce(l)); err != nil {
		t.Fatal(err)
	}
	for _, config := range []string{layout(t.TempDir()).config(), l.config()} {
		cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c", "sleep 60; true", "--config", config)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		defer func() { _, _ = cmd.Process.Kill(), cmd.Wait() }()
		p, running, err := readProcess(l)
		if ours := config == l.config(); err != nil ||
			running != ours || p.found != ours || ours && p.PID != cmd.Process.Pid || p.Program != "/bin/sh" {
			t.Errorf("started with %s: %+v, %t, %v", config, p, running, err)
		}
	}
}

// TestProcessOfAContainer checks that a process that sees another directory at the node's path is not the node's.
func TestProcessOfAContainer(t *testing.T) {
	l := layout(t.TempDir())
	cmd := exec.CommandContext(t.Context(), "/bin/sleep", "60")
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
	if err := cmd.Start(); errors.Is(err, syscall.EPERM) {
		t.Skip(err)
	} else if err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = cmd.Process.Kill(), cmd.Wait() }()
	if !seesOurs(cmd.Process.Pid, l) {
		t.Error("it sees the directory, and is not believed")
	}
	covered := exec.CommandContext(t.Context(), "nsenter",
		"-t", fmt.Sprint(cmd.Process.Pid), "-m", "mount", "-t", "tmpfs", "tmpfs", string(l))
	if out, err := covered.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if seesOurs(cmd.Process.Pid, l) {
		t.Error("it sees another directory, and is believed")
	}
}

// TestNodeComesBackAsItWas checks that a dead node is started again with its previous containerd and sandbox image,
// because another containerd may not understand its files. Exceptions are other options of the user, and a missing
// program.
func TestNodeComesBackAsItWas(t *testing.T) {
	program := filepath.Join(t.TempDir(), "containerd")
	if err := os.WriteFile(program, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	before := &process{Program: program, SandboxImage: "pause:old"}
	gone := &process{Program: program + "-gone", SandboxImage: "pause:old"}
	for _, c := range []struct {
		name              string
		given             Options
		before            *process
		containerd, pause string
		reports           int
	}{
		{"a new node", Options{}, nil, "", DefaultSandboxImage, 0},
		{"one that died", Options{}, before, program, "pause:old", 0},
		{"with options", Options{Containerd: "/x", SandboxImage: "y"}, before, "/x", "y", 0},
		{"without its program", Options{}, gone, "", "pause:old", 1},
		{"without its program, with another given", Options{Containerd: "/x"}, gone, "/x", "pause:old", 0},
		{"of a podctl that did not remember", Options{}, &process{}, "", DefaultSandboxImage, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			reports := 0
			c.given.Report = func(string) { reports++ }
			got := c.given.asBefore(c.before)
			if got.Containerd != c.containerd || got.SandboxImage != c.pause || reports != c.reports {
				t.Errorf("containerd %q, sandbox image %q, %d reports; want %q, %q, %d",
					got.Containerd, got.SandboxImage, reports, c.containerd, c.pause, c.reports)
			}
		})
	}
}

// TestProgramsOfTheAdministrator checks that podctl and containerd's programs find iptables even if its directory is
// not in the caller's PATH.
func TestProgramsOfTheAdministrator(t *testing.T) {
	admin := "/usr/sbin/chroot" // All distributions have this program.
	if _, err := exec.LookPath(admin); err != nil {
		t.Skip(err)
	}
	t.Setenv("PATH", "/nowhere")
	if found, err := lookPath(filepath.Base(admin), "coreutils"); err != nil || filepath.Base(found) != filepath.Base(admin) {
		t.Errorf("%s was not found: %q %v", admin, found, err)
	}
	if _, err := lookPath("podctl-absent", "package"); !errors.As(err, new(*MissingError)) {
		t.Errorf("a missing program: %v", err)
	}
	for path, want := range map[string]string{
		"/bin:/usr/sbin": "/opt:/bin:/usr/sbin:/sbin", "/bin": "/opt:/bin:/usr/sbin:/sbin", "": "/opt:/usr/sbin:/sbin",
		".:bin:/bin:": "/opt:/bin:/usr/sbin:/sbin",
	} {
		t.Setenv("PATH", path)
		if got := searchPath("/opt/containerd"); got != want {
			t.Errorf("with %q: %q, want %q", path, got, want)
		}
	}
}

// TestContainerdThatEndsMeanwhile checks that a containerd that was just killed, but still seemed to run, is started
// again once.
func TestContainerdThatEndsMeanwhile(t *testing.T) {
	l := layout(filepath.Join(t.TempDir(), "node"))
	if err := l.prepare(); err != nil {
		t.Fatal(err)
	}
	program := l.path("containerd")
	if err := os.WriteFile(program, []byte("#!/bin/sh\necho containerd c 2.4.2 x\n"), 0o700); err != nil { // it is executed
		t.Fatal(err)
	}
	dying := exec.CommandContext(t.Context(), "/bin/sh", "-c", "sleep 0.3; exit 1", "--config", l.config())
	if err := dying.Start(); err != nil {
		t.Fatal(err)
	}
	go dying.Wait() //nolint:errcheck // it is to end
	p := &process{PID: dying.Process.Pid, Program: program}
	p.StartTicks, _ = startTicks(p.PID)
	var reports []string
	o := &Options{Report: func(text string) { reports = append(reports, text) }}
	_, err := revive(t.Context(), l, o, p)
	if missing := (*MissingError)(nil); errors.As(err, &missing) {
		t.Skip(err)
	}
	// The program exits at once, which is reported.
	if !errors.Is(err, errEnded) || len(reports) != 1 || reports[0] != "starting containerd 2.4.2" {
		t.Errorf("error %v after %q", err, reports)
	}
}

// TestLockOutlivesTheNode checks that a process that waited while a node was taken down holds the same lock as later
// processes.
func TestLockOutlivesTheNode(t *testing.T) {
	l := layout(filepath.Join(t.TempDir(), "state", "node"))
	unlock, err := lockDir(t.Context(), l)
	if err != nil {
		t.Fatal(err)
	}
	if err = l.prepare(); err != nil {
		t.Fatal(err)
	}
	waiter := make(chan error)
	go func() {
		unlockWaiter, waitErr := lockDir(t.Context(), l)
		if waitErr == nil {
			// If nothing refers to the lock, a garbage collection closes its file and drops it.
			t.Cleanup(unlockWaiter)
		}
		waiter <- waitErr
	}()
	time.Sleep(50 * time.Millisecond) // The waiter has opened the file by now.
	if err = clean(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	unlock()
	if err = <-waiter; err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err = lockDir(ctx, l); err == nil || !strings.Contains(err.Error(), "the node is in use by pid ") {
		t.Errorf("a second one holds the lock: %v", err)
	}
}

// TestAProcessThatHasJustBegun checks that a new process is recognized although it has no arguments yet.
func TestAProcessThatHasJustBegun(t *testing.T) {
	for _, c := range []struct {
		args []string
		want bool
	}{
		{nil, true},
		{[]string{"containerd", "--config", "/n/config.toml"}, true},
		{[]string{"containerd", "--config", "/other/config.toml"}, false},
	} {
		if got := mayHaveArgument(c.args, "/n/config.toml"); got != c.want {
			t.Errorf("%q: %t", c.args, got)
		}
	}
}
