package doctor

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// recorded returns the facts recorded on a machine with a runtime.
func recorded(t *testing.T, name string) *Facts {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	var f Facts
	if err := json.Unmarshal(text, &f); err != nil {
		t.Fatal(err)
	}
	return &f
}

// healthy returns the facts of a machine without problems.
func healthy(t *testing.T) *Facts {
	t.Helper()
	f := recorded(t, "containerd-1.6.20")
	f.Process.Capabilities = "000001ffffffffff"
	return f
}

func TestRecordedMachines(t *testing.T) {
	for name, want := range map[string]map[string]Result{
		"containerd-1.6.20":            {"capabilities": Warning},
		"containerd-2.4.2":             {"capabilities": Warning, "condition": Warning},
		"containerd-1.6.20-no-network": {"capabilities": Warning, "network": Failed, "cni": Failed},
		"containerd-2.4.2-no-network":  {"capabilities": Warning, "network": Failed, "cni": Failed, "condition": Warning},
	} {
		t.Run(name, func(t *testing.T) {
			checks := Examine(recorded(t, name))
			got := map[string]Result{}
			for _, c := range checks {
				if c.Result != OK {
					got[c.Name] = c.Result
				}
				if (c.Result == OK) != (c.Advice == "") {
					t.Errorf("%s ended with %s and advises %q", c.Name, c.Result, c.Advice)
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("failed checks (-want +got):\n%s", diff)
			}
			if _, fatal := want["network"]; CanRun(checks) == fatal {
				t.Errorf("pods can run: %t", CanRun(checks))
			}
			if len(checks) < 16 {
				t.Errorf("only %d checks", len(checks))
			}
		})
	}
}

func TestChecks(t *testing.T) {
	if checks := Examine(healthy(t)); !CanRun(checks) || Count(checks, Warning) > 0 {
		t.Fatalf("a healthy machine is not healthy: %+v", checks)
	}
	there := healthy(t)
	there.Runtime.SandboxImage = &SandboxImage{Name: "i:1", Present: true}
	if checks := Examine(there); !slices.Contains(checks, Check{Name: "sandbox", Result: OK, Found: "image i:1"}) {
		t.Errorf("a sandbox image that is there: %+v", checks)
	}
	unusable := healthy(t)
	unusable.State.Problem = "it is another's"
	if slices.ContainsFunc(Examine(unusable), func(c Check) bool { return c.Name == "checkpoints" }) {
		t.Error("checkpoints that were not read are judged")
	}
	for name, c := range map[string]struct {
		change        func(*Facts)
		check         string
		want          Result
		found, advice string
	}{
		"an API server that does not respond": {
			func(f *Facts) { f.APIServer = &APIServer{Address: "https://a", Problem: "refused"} },
			"API server", Warning, "does not respond: refused", "pods keep running",
		},
		"another cluster": {
			func(f *Facts) { f.APIServer = &APIServer{Address: "https://a", Refusal: "it is another"} },
			"API server", Warning, "belongs to another cluster", "it is another",
		},
		"an API server": {
			func(f *Facts) { f.APIServer = &APIServer{Address: "https://a"} }, "API server", OK, "https://a responds", "",
		},
		"no runtime": {
			func(f *Facts) { f.Endpoint, f.Runtime = Endpoint{Problem: "none found; start one"}, nil },
			"endpoint", Failed, "none found", "start one",
		},
		"a runtime that does not answer": {
			func(f *Facts) { f.Runtime = &Runtime{Problem: "gave no answer within 10s"} },
			"runtime", Failed, "gave no answer", "log",
		},
		"a runtime that is not ready": {
			func(f *Facts) { f.Runtime.Conditions[0] = Condition{Type: runtimeReady, Reason: "Starting"} },
			"runtime", Failed, "not ready: Starting", "log",
		},
		"a runtime that does not report its network": {
			func(f *Facts) { f.Runtime.Conditions = nil },
			"network", Failed, "does not report it", "CNI",
		},
		"a condition of the runtime's own": {
			func(f *Facts) {
				f.Runtime.Conditions = append(f.Runtime.Conditions, Condition{Type: "Own", Message: `{"b":"two","a":"one"}`})
			},
			"condition", Warning, "Own is false: one two", "pods run",
		},
		"a plugin that is missing": {
			func(f *Facts) { f.CNI.Wanted = append(f.CNI.Wanted, "calico") },
			"cni", Failed, "calico are not in /usr/lib/cni", "install",
		},
		"a network that was not loaded": {
			func(f *Facts) { f.CNI.Networks = nil },
			"cni", Warning, "loaded none of 10-podctl.conflist", "log",
		},
		"a sandbox image that no registry has": {
			func(f *Facts) { f.Runtime.SandboxImage = &SandboxImage{Name: "registry.local/podctl/pause:1"} },
			"sandbox", Failed, "pause:1 is missing, and no registry has it", "podctl image load",
		},
		"a sandbox image that can be pulled": {
			func(f *Facts) { f.Runtime.SandboxImage = &SandboxImage{Name: "registry.k8s.io/pause:3.10"} },
			"sandbox", Warning, "the first pod pulls it", "podctl image pull registry.k8s.io/pause:3.10",
		},
		"a sandbox image without a name": {
			func(f *Facts) { f.Runtime.SandboxImage = &SandboxImage{} },
			"sandbox", Warning, "has no sandbox image", "podctl node up",
		},
		"no cgroups": {
			func(f *Facts) { f.Cgroups = Cgroups{} },
			"cgroups", Failed, "none are mounted", "mount -t cgroup2",
		},
		"no memory controller": {
			func(f *Facts) { f.Cgroups.Controllers = []string{"cpu", "cpuset", "pids"} },
			"cgroups", Warning, "without the controllers memory", "cgroup_enable",
		},
		"cgroups that cannot be written": {
			func(f *Facts) { f.Cgroups.Writable = false },
			"cgroups", Warning, "not writable", "mount",
		},
		"the systemd driver without systemd": {
			func(f *Facts) { f.Runtime.Driver = "systemd" },
			"cgroups", Failed, "systemd does not run", "SystemdCgroup = false",
		},
		"a driver that only the configuration names": {
			func(f *Facts) { f.Runtime.Driver, f.Runtime.SystemdCgroup = "", true },
			"cgroups", Failed, "driver systemd, and systemd does not run", "SystemdCgroup = false",
		},
		"a user without rights": {
			func(f *Facts) { f.Process = Process{UID: 1000, Capabilities: "0000000000000000"} },
			"capabilities", Failed, "user 1000", "as root",
		},
		"root without CAP_SYS_ADMIN": {
			func(f *Facts) { f.Process.Capabilities = "000001ffffdfffff" },
			"capabilities", Failed, "without CAP_SYS_ADMIN", "cannot be mounted",
		},
		"root without CAP_NET_ADMIN": {
			func(f *Facts) { f.Process.Capabilities = "000001ffffffefff" },
			"capabilities", Warning, "without CAP_NET_ADMIN", "node up",
		},
		"no overlayfs": {func(f *Facts) { f.Kernel.Overlay = false }, "overlayfs", Warning, "not loaded", "modprobe overlay"},
		"no seccomp":   {func(f *Facts) { f.Kernel.Seccomp = false }, "seccomp", Warning, "does not have it", "kernel"},
		"no network namespaces": {func(f *Facts) {
			f.Kernel.Namespaces = []string{"ipc", "mnt", "pid", "uts"}
		}, "namespaces", Failed, "does not have net", "kernel"},
		"no user namespaces": {func(f *Facts) { f.Kernel.UserNamespaces = 0 }, "namespaces", Warning, "are disabled", "sysctl"},
		"no bridges": {func(f *Facts) {
			f.Kernel.Bridge = false
		}, "bridge", Warning, "bridge is not loaded", "modprobe bridge"},
		"no br_netfilter": {func(f *Facts) {
			f.Kernel.BridgeNetfilter = false
		}, "bridge", Warning, "br_netfilter", "modprobe br_netfilter"},
		"no forwarding": {func(f *Facts) { f.Kernel.IPForward = false }, "forwarding", Warning, "is 0", "sysctl"},
		"a kubelet": {func(f *Facts) {
			f.Kubelet = &Kubelet{Process: "k3s", PID: 7}
		}, "kubelet", Failed, "k3s (pid 7)", "podctl export"},
		"a full disk": {func(f *Facts) {
			f.Disks[0].Free = 1 << 20
		}, "disk", Failed, "1.0 MiB of 252.0 GiB", "free some space"},
		"a disk nearly full": {func(f *Facts) {
			f.Disks[0].Free = f.Disks[0].Size / 11
		}, "disk", Warning, "22.9 GiB", "below 10 %"},
		"no inodes":  {func(f *Facts) { f.Disks[0].InodesFree = 0 }, "disk", Failed, "no inodes", "remove"},
		"few inodes": {func(f *Facts) { f.Disks[0].InodesFree = 9 }, "disk", Warning, "and 9 of", "remove"},
		"a clock that was set back": {func(f *Facts) {
			f.State.NewestWrite = f.Time.Add(time.Hour)
		}, "clock", Warning, "1h0m0s before podctl's last write", "restart without delay"},
		"a clock that was never set": {func(f *Facts) {
			f.Time, f.State.NewestWrite = time.Unix(0, 0), time.Time{}
		}, "clock", Warning, "1970", "certificates"},
		"a state directory of another user": {
			func(f *Facts) { f.State.Problem = "cannot be trusted: it is another's; remove it" },
			"state", Failed, "another's", "remove it",
		},
		"one that is read only": {func(f *Facts) {
			f.State.Writable = false
		}, "state", Failed, "cannot be written", "--state-dir"},
		"one that cannot be created": {func(f *Facts) {
			f.State = State{Path: "/x"}
		}, "state", Failed, "/x does not exist and cannot", "as root"},
		"one that others can read": {func(f *Facts) {
			f.State.Open = true
		}, "state", Warning, "other users can read it", "chmod 700"},
		"one that does not exist yet": {func(f *Facts) {
			f.State = State{Path: "/x", Writable: true}
		}, "state", OK, "first apply creates it", ""},
		"a checkpoint that is damaged": {func(f *Facts) {
			f.State.Unreadable = []string{"remove the file"}
		}, "checkpoints", Warning, "0 can be read, 1 cannot", "remove"},
		"mounts that are hidden": {func(f *Facts) {
			f.State.Hidden, f.State.HiddenBy = []string{"/s/v"}, "/s"
		}, "mounts", Warning, "1 below /var/lib/podctl are hidden by the mount on /s, such as /s/v", "umount /s"},
		"a checkpoint that others can read": {func(f *Facts) {
			f.State.OpenCheckpoints = []string{"/j"}
		}, "checkpoints", Warning, "other users can read /j", "chmod 600"},
	} {
		t.Run(name, func(t *testing.T) {
			f := healthy(t)
			c.change(f)
			for _, got := range Examine(f) {
				if got.Name != c.check || got.Name == "disk" && !strings.HasPrefix(got.Found, "state") {
					continue
				}
				if got.Result != c.want || !strings.Contains(got.Found, c.found) || !strings.Contains(got.Advice, c.advice) {
					t.Errorf("%+v, want %s, %q and %q", got, c.want, c.found, c.advice)
				}
				return
			}
			t.Errorf("no check %s", c.check)
		})
	}
}
