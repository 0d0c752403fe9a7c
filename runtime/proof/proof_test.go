package proof

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/podspec/podspectest"
	"github.com/podctl/podctl/runtime/criconfig"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/state"
	"github.com/podctl/podctl/runtime/volume"
)

// lab is a machine with a directory h that contains a file f and a directory d.
type lab struct {
	*Prover
	host string
}

// newLab checks a pod that mounts the directory h at /h and an emptyDir at /e; mounts, spec and container are added to
// it.
func newLab(t *testing.T, mounts, spec, container string) *lab {
	t.Helper()
	host := t.TempDir()
	for _, err := range []error{
		os.WriteFile(filepath.Join(host, "f"), nil, 0o600), os.Mkdir(filepath.Join(host, "d"), 0o700),
		os.Symlink("f", filepath.Join(host, "link")), os.Symlink("/etc", filepath.Join(host, "out")),
		os.Symlink("none", filepath.Join(host, "dangling")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	text := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {key: value}\n---\n" +
		"apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec:\n" + spec +
		"  volumes:\n  - {name: h, hostPath: {path: " + host + "}}\n  - {name: e, emptyDir: {}}\n  - {name: c, configMap: {name: c}}\n" +
		"  containers:\n  - name: app\n    image: i:1\n" + container +
		"    volumeMounts:\n    - {name: h, mountPath: /h}\n    - {name: e, mountPath: /e}\n" + mounts
	d := podspectest.Desired(t, text)
	layout := state.Layout{Root: t.TempDir(), LogRoot: t.TempDir()}
	volumes := volume.Context{Pod: layout.Pod(d.Pod.UID), Desired: d}
	p, err := New(Facts{
		Volumes: volumes, Node: criconfig.Node{Name: "node", SeccompRoot: host}, Runtime: "containerd",
		Images: map[string]model.Image{"i:1": {ID: "sha256:1"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return &lab{host: host, Prover: p}
}

func (l *lab) app() podspec.ContainerRef {
	ref, _ := podspec.FindContainer(l.Desired.Pod, "app")
	return ref
}

// TestPlaces checks that mounts that runc cannot make are found, and others not.
func TestPlaces(t *testing.T) {
	for name, c := range map[string]struct{ mounts, container, want string }{
		"nothing more": {"", "", ""},
		"the root":     {"{name: e, mountPath: /}", "", "nothing can be mounted on /"},
		"proc": {
			"{name: e, mountPath: /proc}",
			"",
			`"/proc" cannot be mounted because it is not of type proc`,
		},
		"proc by another name": {
			"{name: e, mountPath: /a/../proc/}",
			"",
			`"/proc" cannot be mounted because it is not of type proc`,
		},
		"below proc": {
			"{name: e, mountPath: /proc/x}",
			"",
			`"/proc/x" cannot be mounted because it is inside /proc`,
		},
		"a file of proc that lxcfs makes": {"{name: h, mountPath: /proc/meminfo, subPath: f}", "", ""},
		"beside proc":                     {"{name: e, mountPath: /process}", "", ""},
		"sys":                             {"{name: e, mountPath: /sys}", "", ""},
		"what sys does not have":          {"{name: e, mountPath: /sys/none}", "", "/sys/none does not exist in the mount at /sys"},
		"what sys has":                    {"{name: e, mountPath: /sys/fs}", "", ""},
		"an empty dev":                    {"{name: e, mountPath: /dev}", "", "has no /dev/null"},
		"a directory on a file": {
			"{name: e, mountPath: /h/f}",
			"",
			"volumeMounts[2]: a directory cannot be mounted on /h/f, which is a file",
		},
		"a directory on a link to a file": {"{name: e, mountPath: /h/link}", "", "a directory cannot be mounted on /h/link"},
		"a directory on a directory":      {"{name: e, mountPath: /h/d}", "", ""},
		"a directory where nothing is":    {"{name: e, mountPath: /h/new}", "", ""},
		"a directory below a file": {
			"{name: e, mountPath: /h/f/x}",
			"",
			"/h/f/x is below a file of the volume mounted at /h: not a directory",
		},
		"a file on a file": {"{name: h, mountPath: /h/f, subPath: f}", "", ""},
		"a file on a directory": {
			"{name: h, mountPath: /h/d, subPath: f}",
			"",
			"a file cannot be mounted on /h/d, which is a directory",
		},
		"a link that leaves the volume": {"{name: e, mountPath: /h/out/x}", "", ""},
		"nothing in a read-only volume": {
			"{name: h, mountPath: /r, readOnly: true}\n    - {name: e, mountPath: /r/new}",
			"",
			"volumeMounts[3]: /r/new does not exist in the mount at /r, " +
				"and cannot be created there: read-only file system",
		},
		"something in a read-only volume": {"{name: h, mountPath: /r, readOnly: true}\n    - {name: e, mountPath: /r/d}", "", ""},
		"the outer mount named last": {
			"{name: e, mountPath: /r/new}\n    - {name: h, mountPath: /r, readOnly: true}",
			"",
			"volumeMounts[2]: /r/new does not exist in the mount at /r",
		},
		"a directory in a ConfigMap": {"{name: c, mountPath: /c}\n    - {name: e, mountPath: /c/new}", "", ""},
		"a file in a ConfigMap": {
			"{name: c, mountPath: /c}\n    - {name: h, mountPath: /c/new, subPath: f}",
			"",
			"a file cannot be mounted on /c/new, which is a directory",
		},
		"a read-only etc":                  {"{name: c, mountPath: /etc}", "", "/etc/hosts does not exist in the mount at /etc"},
		"the termination message":          {"", "terminationMessagePath: /h/log", ""},
		"the termination message on /":     {"", "terminationMessagePath: /", "terminationMessagePath: nothing can be mounted on /"},
		"the termination message on a dir": {"", "terminationMessagePath: /h", "terminationMessagePath: a file cannot be mounted on /h"},
		"the termination message in proc": {
			"",
			"terminationMessagePath: /proc/1",
			"terminationMessagePath: \"/proc/1\" cannot be mounted because it is inside /proc",
		},
		"a directory":                 {"", "workingDir: /h/d", ""},
		"a relative directory":        {"", "workingDir: h", `workingDir "h" is not an absolute path`},
		"a directory that is created": {"", "workingDir: /h/new/dir", ""},
		"a directory that is a file":  {"", "workingDir: /h/f", "workingDir: /h/f is not a directory"},
		"a directory in a file":       {"", "workingDir: /h/f/x", "workingDir: /h/f/x is not a directory"},
		"a directory that cannot be created": {
			"{name: h, mountPath: /r, readOnly: true}",
			"workingDir: /r/new",
			"workingDir: /r/new does not exist in the mount at /r",
		},
	} {
		t.Run(name, func(t *testing.T) {
			mounts, container := c.mounts, c.container
			if mounts != "" {
				mounts = "    - " + mounts + "\n"
			}
			if container != "" {
				container = "    " + container + "\n"
			}
			l := newLab(t, mounts, "", container)
			expect(t, l.Container(l.app(), 0, nil), c.want)
			if l.facts.Runtime = "cri-o"; c.want != "" && !strings.HasPrefix(c.want, "workingDir \"") {
				expect(t, l.Container(l.app(), 0, nil), "")
			}
		})
	}
}

func expect(t *testing.T, err error, want string) {
	t.Helper()
	if (err == nil) != (want == "") || (err != nil && !strings.Contains(err.Error(), want)) {
		t.Errorf("%v, want %q", err, want)
	}
}

// TestContent checks that in a volume with podctl's content a missing mount point is created as a directory before the
// content. Existing files stay, and do not count if other content will be written.
func TestContent(t *testing.T) {
	const directory = "    - {name: c, mountPath: /c}\n    - {name: e, mountPath: /c/key}\n"
	const onFile = "    - {name: c, mountPath: /c}\n    - {name: h, mountPath: /c/key, subPath: f}\n"
	for mounts, c := range map[string]struct{ before, after string }{
		directory: {"", "a directory cannot be mounted on /c/key, which is a file"},
		onFile:    {"a file cannot be mounted on /c/key, which is a directory", ""},
	} {
		l := newLab(t, mounts, "", "")
		expect(t, l.Container(l.app(), 0, nil), c.before)
		alone := *l.Desired
		alone.Pod = l.Desired.Pod.DeepCopy()
		alone.Pod.Spec.Containers[0].VolumeMounts = alone.Pod.Spec.Containers[0].VolumeMounts[:3]
		if err := volume.Prepare(t.Context(), volume.Context{Pod: l.facts.Volumes.Pod, Desired: &alone}, "c"); err != nil {
			t.Fatal(err)
		}
		expect(t, l.Container(l.app(), 0, nil), c.after)
		l.facts.States = []volume.State{{Name: "c", Unfinished: true}}
		expect(t, l.Container(l.app(), 0, nil), "")
	}
}

// TestPartsToBeWritten checks that a file of a volume counts as a file before it is written.
func TestPartsToBeWritten(t *testing.T) {
	const onto = "    - {name: c, mountPath: /c}\n    - {name: c, mountPath: /c/new, subPath: "
	for mounts, want := range map[string]string{
		onto + "key}\n":  "spec.containers[0].volumeMounts[3]: a file cannot be mounted on /c/new, which is a directory",
		onto + "none}\n": "", "    - {name: c, mountPath: /x, subPath: key}\n": "",
		"    - {name: c, mountPath: /x, " +
			"subPath: key}\n    - {name: e, mountPath: /x/y}\n": "volumeMounts[3]: /x/y is below a file of the volume",
	} {
		l := newLab(t, mounts, "", "")
		l.facts.States = []volume.State{{Name: "c", Unfinished: true}}
		expect(t, l.Container(l.app(), 0, nil), want)
	}
}

// TestParts checks that a subPath that cannot be bound is found by the files in the volume, unless they are not written
// yet.
func TestParts(t *testing.T) {
	for sub, want := range map[string]string{
		"d": "", "f": "", "new": "", "d/new/dir": "", "link": "",
		"f/x":        `spec.containers[0].volumeMounts[2]: failed to prepare subPath for volumeMount "h" of container "app": "f/x": `,
		"link/x":     "not a directory",
		"out":        "it leads out of the volume",
		"dangling":   "a symbolic link in it has no target",
		"dangling/x": "a symbolic link in it has no target",
	} {
		l := newLab(t, "    - {name: h, mountPath: /x, subPath: "+sub+"}\n", "", "")
		err := l.Container(l.app(), 0, nil)
		expect(t, err, want)
		if err != nil && strings.Count(err.Error(), "volumeMounts[2]") != 1 {
			t.Errorf("%s: its path is reported more than once: %v", sub, err)
		}
		if _, err = os.Stat(filepath.Join(l.host, "new")); !errors.Is(err, fs.ErrNotExist) {
			t.Error("a proof created a directory")
		}
		l.facts.States = []volume.State{{Name: "h", Unfinished: true}}
		expect(t, l.Container(l.app(), 0, nil), "")
	}
}

// TestHostPaths checks a path without a type that the runtime can neither mount nor create. A part of a path is checked
// as a part.
func TestHostPaths(t *testing.T) {
	l := newLab(t, "", "", "")
	for path, want := range map[string]string{
		"new":      "",
		"link":     "",
		"f/x":      "spec.containers[0].volumeMounts[0]: hostPath: stat ",
		"dangling": "is a link to a path that does not exist",
	} {
		l.Desired.Pod.Spec.Volumes[0].HostPath.Path = filepath.Join(l.host, path)
		l.Paths.Volumes = l.facts.Volumes.Paths()
		err := l.Container(l.app(), 0, nil)
		if expect(t, err, want); err != nil && model.ReasonOf(err, "") != model.CreateContainerError {
			t.Errorf("%s: %s", path, model.ReasonOf(err, ""))
		}
	}
	l.Desired.Pod.Spec.Containers[0].VolumeMounts = nil
	expect(t, l.Container(l.app(), 0, nil), "")
}

// TestDemands checks that missing features of the node or the runtime are found if they are known.
func TestDemands(t *testing.T) {
	has := func(name v1.ResourceName, n int64) criconfig.Node {
		return criconfig.Node{AppArmor: true, Allocatable: v1.ResourceList{name: *resource.NewQuantity(n, resource.DecimalSI)}}
	}
	const strict = "  securityContext: {supplementalGroupsPolicy: Strict}\n"
	for name, c := range map[string]struct {
		spec, container string
		node            criconfig.Node
		reason          model.Reason
	}{
		"cpu is noted only":        {"", "    resources: {requests: {cpu: 9}}\n", has("cpu", 1), ""},
		"strict groups":            {strict, "", criconfig.Node{}, model.SupplementalGroupsPolicyNotSupported},
		"strict groups, supported": {strict, "", criconfig.Node{SupplementalGroupsPolicy: true}, ""},
		"merged groups":            {"  securityContext: {supplementalGroupsPolicy: Merge}\n", "", criconfig.Node{}, ""},
		"AppArmor": {
			"",
			"    securityContext: {appArmorProfile: {type: RuntimeDefault}}\n",
			criconfig.Node{},
			model.AppArmor,
		},
		"AppArmor in the kernel": {"", "    securityContext: {appArmorProfile: {type: RuntimeDefault}}\n", has("cpu", 1), ""},
		"no AppArmor":            {"", "    securityContext: {appArmorProfile: {type: Unconfined}}\n", criconfig.Node{}, ""},
		"a seccomp profile not there": {
			"",
			"    securityContext: {seccompProfile: {type: Localhost, localhostProfile: none}}\n",
			criconfig.Node{SeccompRoot: "/nothing"},
			model.CreateContainerError,
		},
		"the runtime's seccomp profile": {
			"",
			"    securityContext: {seccompProfile: {type: RuntimeDefault}}\n",
			criconfig.Node{SeccompRoot: "/nothing"},
			"",
		},
	} {
		l := newLab(t, "", c.spec, c.container)
		l.Node = c.node
		err := l.Container(l.app(), 0, nil)
		if (err == nil) != (c.reason == "") || (err != nil && model.ReasonOf(err, "else") != c.reason) {
			t.Errorf("%s: %v (%s)", name, err, model.ReasonOf(err, "else"))
		}
	}
}

// TestPropagation checks that only whole volumes with a propagation are checked. The check itself is tested in package
// volume.
func TestPropagation(t *testing.T) {
	mode, none := v1.MountPropagationBidirectional, v1.MountPropagationNone
	for _, c := range []struct {
		path  string
		m     v1.VolumeMount
		check bool
	}{
		{"/on/the/machine", v1.VolumeMount{MountPropagation: &mode}, true},
		{"/on/the/machine", v1.VolumeMount{MountPropagation: &mode, SubPath: "part"}, false},
		{"/on/the/machine", v1.VolumeMount{MountPropagation: &mode, SubPathExpr: "$(PART)"}, false},
		{"/on/the/machine", v1.VolumeMount{MountPropagation: &none}, false},
		{"/on/the/machine", v1.VolumeMount{}, false},
		{"", v1.VolumeMount{MountPropagation: &mode}, false},
	} {
		if got := needsPropagation(&c.m, c.path); got != c.check {
			t.Errorf("%q with %+v: checked: %t", c.path, c.m, got)
		}
	}
}

// TestSandboxes checks the reasons for which a runtime refuses a sandbox.
func TestSandboxes(t *testing.T) {
	number := func(n int64) *runtimeapi.Int64Value { return &runtimeapi.Int64Value{Value: n} }
	for name, c := range map[string]struct {
		user, group *runtimeapi.Int64Value
		sysctl      string
		handler     string
		want        string
	}{
		"nothing":                       {},
		"a user":                        {user: number(1)},
		"a user and a group":            {user: number(1), group: number(1)},
		"a group alone":                 {group: number(1), want: "runAsGroup"},
		"a sysctl of the pod":           {sysctl: "kernel.shm_rmid_forced"},
		"a sysctl of the node":          {sysctl: "vm.swappiness", want: "not in a separate kernel namespace"},
		"one of the node, by a handler": {sysctl: "vm.swappiness", handler: "kata"},
		"a sysctl of no kernel":         {sysctl: "net.none", want: "the kernel has no sysctl"},
		"of none of this machine's":     {sysctl: "net.none", handler: "kata"},
	} {
		spec := ""
		if c.handler != "" {
			spec = "  runtimeClassName: " + c.handler + "\n"
		}
		config := &runtimeapi.PodSandboxConfig{Linux: &runtimeapi.LinuxPodSandboxConfig{
			SecurityContext: &runtimeapi.LinuxSandboxSecurityContext{RunAsUser: c.user, RunAsGroup: c.group}, Sysctls: map[string]string{},
		}}
		if c.sysctl != "" {
			config.Linux.Sysctls[c.sysctl] = "1"
		}
		err := newLab(t, "", spec, "").Sandbox(config)
		if expect(t, err, c.want); err != nil && model.ReasonOf(err, "") != model.CreatePodSandboxError {
			t.Errorf("%s: %s", name, model.ReasonOf(err, ""))
		}
	}
}

// TestLoadedProfiles checks that a profile is in the kernel's list, or that the list is unreadable.
func TestLoadedProfiles(t *testing.T) {
	list := filepath.Join(t.TempDir(), "profiles")
	if !isLoaded(list, "mine") {
		t.Error("a list that cannot be read refuses a profile")
	}
	if err := os.WriteFile(list, []byte("docker-default (enforce)\nmine (complain)\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if !isLoaded(list, "mine") || isLoaded(list, "min") || isLoaded(list, "yours") {
		t.Error("the list is read wrongly")
	}
}

// TestAddressesOfProofs checks that a check has an address if the pod will get one, and none on the node's network.
func TestAddressesOfProofs(t *testing.T) {
	for name, c := range map[string]struct {
		ips  []string
		host bool
		want int
	}{
		"its own": {[]string{"10.0.0.2", "fd00::2"}, false, 2}, "not yet": {nil, false, 1}, "the node's": {nil, true, 0},
	} {
		if got := withPlaceholders(c.ips, &v1.Pod{Spec: v1.PodSpec{HostNetwork: c.host}}); len(got) != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestSubPathFromAFile checks that a variable from an init container's file may be part of a subPath, and that a check
// before the volume exists works without it.
func TestSubPathFromAFile(t *testing.T) {
	l := newLab(t, "    - {name: e, mountPath: /v, subPathExpr: of-$(DIR)}\n", "",
		"    env:\n    - {name: DIR, valueFrom: {fileKeyRef: {volumeName: e, path: app.env, key: DIR}}}\n")
	proven := func() string {
		t.Helper()
		config, err := l.config(l.app(), 0, []string{"10.0.0.2"})
		if err != nil {
			t.Fatal(err)
		}
		return filepath.Base(config.GetMounts()[2].GetHostPath())
	}
	if got := proven(); got != "of-?" {
		t.Errorf("before the volume is there the subPath is %q", got)
	}
	if err := volume.Prepare(t.Context(), l.facts.Volumes, "e"); err != nil {
		t.Fatal(err)
	}
	if got := proven(); got != "of-?" {
		t.Errorf("before the file is there the subPath is %q", got)
	}
	if err := os.WriteFile(filepath.Join(l.Paths.Volumes["e"], "app.env"), []byte("DIR='blue'\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := proven(); got != "of-blue" {
		t.Errorf("with the file the subPath is %q", got)
	}
}

// TestEnvFiles checks the reading of a volume that the pod controls: links do not lead out of it, a pipe does not
// block, and the size is limited.
func TestEnvFiles(t *testing.T) {
	l := newLab(t, "", "", "    env:\n    - {name: V, valueFrom: {fileKeyRef: {volumeName: e, path: f, key: K}}}\n")
	if err := volume.Prepare(t.Context(), l.facts.Volumes, "e"); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(l.Paths.Volumes["e"], "f")
	outside := filepath.Join(t.TempDir(), "env")
	write := func(path, text string) error { return os.WriteFile(path, []byte(text), 0o600) }
	if err := write(outside, "K='v'\n"); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		make        func() error
		want, fault string
	}{
		"a file":      {func() error { return write(file, "# a\nK='v'\n") }, "v", ""},
		"another key": {func() error { return write(file, "J='v'\n") }, "", ""},
		"no file":     {func() error { return nil }, "?", ""},
		"a link out":  {func() error { return os.Symlink(outside, file) }, "", "f in volume e: it is a link that leads out of the directory"},
		"a pipe":      {func() error { return unix.Mkfifo(file, 0o600) }, "", "f in volume e is not a regular file"},
		"a directory": {func() error { return os.Mkdir(file, 0o700) }, "", "f in volume e is not a regular file"},
		"a huge file": {func() error { return write(file, strings.Repeat("#\n", envFileMax)) }, "", "f in volume e: "},
		"without quotes": {func() error {
			return write(file, "K=v\n")
		}, "", "file f in volume e: invalid environment variable format at line 1"},
		"a very long one": {func() error { return write(file, "K='"+strings.Repeat("v", 1<<17)+"'\n") }, "", "token too long"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := errors.Join(os.RemoveAll(file), c.make()); err != nil {
				t.Fatal(err)
			}
			values, err := envFiles(l.facts.Volumes, l.app(), "?")
			expect(t, err, c.fault)
			if got := values[criconfig.FileKey{Volume: "e", Path: "f", Key: "K"}]; got != c.want {
				t.Errorf("the value is %q", got)
			}
		})
	}
}

// TestUnboundClaims checks that an unbound claim of the API server holds no container: the pod waits for it.
func TestUnboundClaims(t *testing.T) {
	l := newLab(t, "    - {name: e, mountPath: /s, subPath: a/b}\n", "", "")
	l.Desired.Owner = podspec.OwnerAPI
	for i := range l.Desired.Pod.Spec.Volumes {
		if vol := &l.Desired.Pod.Spec.Volumes[i]; vol.Name == "e" {
			vol.VolumeSource = v1.VolumeSource{PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}
		}
	}
	l.Paths.Volumes = l.facts.Volumes.Paths()
	if err := l.Container(l.app(), 0, nil); err != nil {
		t.Error(err)
	}
	if _, changed := l.Paths.Volumes["e"]; !changed || l.Paths.Volumes["e"] != "" {
		t.Errorf("the shared input: %q", l.Paths.Volumes["e"])
	}
}

// TestDamagedIDs checks that a pod whose range of IDs cannot be read has a fault of its sandbox.
func TestDamagedIDs(t *testing.T) {
	l := newLab(t, "", "  hostUsers: false\n", "")
	path := l.facts.Volumes.Pod.IDs().Path()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte("{"), 0o600)); err != nil {
		t.Fatal(err)
	}
	found := Faults(l.facts, nil)
	if f := found[""]; f.Reason != model.CreatePodSandboxError || !strings.Contains(f.Message, path) {
		t.Errorf("the fault is %+v", f)
	}
}
