package volume

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/runtime/runtimetest"
	"github.com/podctl/podctl/runtime/safefs"
	"github.com/podctl/podctl/runtime/state"
)

// foreignLink creates a symbolic link that belongs to another user.
func foreignLink(t *testing.T, target, link string) {
	t.Helper()
	symlink(t, target, link)
	if err := os.Lchown(link, 65534, 65534); err != nil {
		t.Fatal(err)
	}
}

// repeat repeats work until stop is called.
func repeat(work func()) (stop func()) {
	done := make(chan struct{})
	var group sync.WaitGroup
	group.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
				work()
			}
		}
	})
	return func() {
		close(done)
		group.Wait()
	}
}

// TestHostPathIsSafeWhileLinksAreSwapped creates a hostPath in a directory of another user, who replaces it with a link
// to root's file and back.
func TestHostPathIsSafeWhileLinksAreSwapped(t *testing.T) {
	for kind, what := range map[v1.HostPathType]string{v1.HostPathDirectoryOrCreate: "a/b", v1.HostPathFileOrCreate: "a"} {
		t.Run(string(kind), func(t *testing.T) {
			base, victim := t.TempDir(), t.TempDir()
			secret := filepath.Join(victim, "secret")
			write(t, secret, "root's")
			name, link := filepath.Join(base, "a"), filepath.Join(base, "link")
			foreignLink(t, secret, link)
			c := newContext(t, hostPathVolume("host", filepath.Join(base, what), kind))
			stop := repeat(func() {
				_ = exchange(name, link)
				if info, err := os.Lstat(name); err == nil && info.Mode()&os.ModeSymlink == 0 {
					_ = os.Rename(name, name+".old")
					_ = os.RemoveAll(name + ".old")
				}
			})
			for range 1500 {
				_ = Prepare(t.Context(), c, "host")
			}
			stop()
			wantMode(t, secret, 0o600)
			wantText(t, secret, "root's")
			if left := names(t, victim); len(left) != 1 {
				t.Errorf("files in the other pod's directory: %v", left)
			}
		})
	}
}

// TestHostPathThroughLinks checks that podctl creates missing paths only through root's links and refuses others with a
// message, but finds existing paths through any link.
func TestHostPathThroughLinks(t *testing.T) {
	base, victim := t.TempDir(), t.TempDir()
	symlink(t, victim, filepath.Join(base, "own"))
	foreignLink(t, victim, filepath.Join(base, "foreign"))
	c := newContext(t,
		hostPathVolume("own", filepath.Join(base, "own/new"), v1.HostPathDirectoryOrCreate),
		hostPathVolume("dir", filepath.Join(base, "foreign/dir"), v1.HostPathDirectoryOrCreate),
		hostPathVolume("file", filepath.Join(base, "foreign/file"), v1.HostPathFileOrCreate),
		hostPathVolume("there", filepath.Join(base, "foreign/new"), v1.HostPathDirectoryOrCreate),
	)
	prepare(t, c, "own")
	wantMode(t, filepath.Join(victim, "new"), os.ModeDir|0o755)
	prepare(t, c, "there")
	for _, name := range []string{"dir", "file"} {
		err := Prepare(t.Context(), c, name)
		if link := (*safefs.LinkError)(nil); !errors.As(err, &link) ||
			!strings.Contains(err.Error(), "foreign is a symbolic link of user 65534") ||
			!strings.Contains(err.Error(), "create the missing directories yourself") {
			t.Errorf("%s: %v, want a refusal of the link, with advice", name, err)
		}
	}
	if left := names(t, victim); len(left) != 1 {
		t.Errorf("files in the target of the link: %v", left)
	}
}

func TestHostPathThatIsRelativeIsRefused(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, kind := range []v1.HostPathType{v1.HostPathUnset, v1.HostPathDirectoryOrCreate, v1.HostPathFileOrCreate} {
		c := newContext(t, hostPathVolume("host", "made/here", kind))
		if err := Prepare(t.Context(), c, "host"); err == nil || !strings.Contains(err.Error(), "must be an absolute path") {
			t.Errorf("type %q: %v", kind, err)
		}
		wantUnprepared(t, c, "host")
	}
	wantGone(t, "made")
}

// TestDataLinkThatWasTamperedWithIsReplaced checks that ..data is replaced if it is not a link to a directory of the
// writer. A privileged container can change it.
func TestDataLinkThatWasTamperedWithIsReplaced(t *testing.T) {
	for name, plant := range map[string]func(t *testing.T, data, now, outside string){
		"a pipe":                      func(t *testing.T, data, _, _ string) { t.Helper(); mkfifo(t, data) },
		"a file":                      func(t *testing.T, data, _, _ string) { t.Helper(); write(t, data, "x") },
		"an empty directory":          func(t *testing.T, data, _, _ string) { t.Helper(); write(t, data+"/x", ""); remove(t, data+"/x") },
		"a directory of files":        func(t *testing.T, data, _, _ string) { t.Helper(); write(t, data+"/sub/a", "1") },
		"a device":                    func(t *testing.T, data, _, _ string) { t.Helper(); mknod(t, data) },
		"a link to elsewhere":         func(t *testing.T, data, _, outside string) { t.Helper(); symlink(t, outside, data) },
		"an absolute link to the own": func(t *testing.T, data, now, _ string) { t.Helper(); symlink(t, now, data) },
		"a link with a slash":         func(t *testing.T, data, now, _ string) { t.Helper(); symlink(t, "./"+filepath.Base(now), data) },
		"a link to a link": func(t *testing.T, data, now, _ string) {
			t.Helper()
			symlink(t, filepath.Base(now), filepath.Join(filepath.Dir(data), "..other"))
			symlink(t, "..other", data)
		},
		"a link to a link outside": func(t *testing.T, data, _, outside string) {
			t.Helper()
			symlink(t, outside, filepath.Join(filepath.Dir(data), "..other"))
			symlink(t, "..other", data)
		},
		"a link to a name of the user's": func(t *testing.T, data, now, _ string) {
			t.Helper()
			if err := os.Rename(now, filepath.Join(filepath.Dir(data), "visible")); err != nil {
				t.Fatal(err)
			}
			symlink(t, "visible", data)
		},
		"a link to itself":     func(t *testing.T, data, _, _ string) { t.Helper(); symlink(t, "..data", data) },
		"a link to the parent": func(t *testing.T, data, _, _ string) { t.Helper(); symlink(t, "..", data) },
		"a link to a pipe":     func(t *testing.T, data, _, _ string) { t.Helper(); mkfifo(t, data+"x"); symlink(t, "..datax", data) },
		"a link to nothing":    func(t *testing.T, data, _, _ string) { t.Helper(); symlink(t, "..gone", data) },
		"..data_tmp full, too": func(t *testing.T, data, _, _ string) {
			t.Helper()
			write(t, data+"_tmp/x/y", "")
			symlink(t, "..data_tmp", data)
		},
		"..data_tmp left behind": func(t *testing.T, data, now, _ string) {
			t.Helper()
			write(t, data+"_tmp/x", "")
			symlink(t, filepath.Base(now), data)
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newContext(t, configMapVolume("conf"))
			prepare(t, c, "conf")
			outside := t.TempDir()
			write(t, filepath.Join(outside, "a"), "1")
			data := filepath.Join(c.dir(t, "conf"), dataLink)
			target, err := os.Readlink(data)
			if err != nil {
				t.Fatal(err)
			}
			now := filepath.Join(filepath.Dir(data), target)
			remove(t, data)
			plant(t, data, now, outside)
			wanted, err := wantedOf(c, "conf")
			if err != nil {
				t.Fatal(err)
			}
			if digest, prepared, err := onDisk(c, "conf"); err != nil || !prepared || digest == wanted {
				t.Errorf("digest %q, prepared %t, %v; want a volume that needs an update", digest, prepared, err)
			}
			prepare(t, c, "conf")
			wantPrepared(t, c, "conf")
			wantText(t, filepath.Join(c.dir(t, "conf"), "a"), "1")
			wantText(t, filepath.Join(outside, "a"), "1")
			if left := names(t, outside); len(left) != 1 {
				t.Errorf("files outside of the volume: %v", left)
			}
		})
	}
}

func mknod(t *testing.T, path string) {
	t.Helper()
	if err := unix.Mknod(path, unix.S_IFCHR|0o600, int(unix.Mkdev(1, 5))); err != nil {
		t.Skip("only root can create devices:", err)
	}
}

// TestHostileContentIsNotRead checks that the type and size of files from a privileged container are checked before
// they are read.
func TestHostileContentIsNotRead(t *testing.T) {
	for name, plant := range map[string]func(t *testing.T, dir string){
		"a pipe":            func(t *testing.T, dir string) { t.Helper(); remove(t, dir+"/a"); mkfifo(t, dir+"/a") },
		"an endless device": func(t *testing.T, dir string) { t.Helper(); remove(t, dir+"/a"); mknod(t, dir+"/a") },
		"a huge file": func(t *testing.T, dir string) {
			t.Helper()
			if err := os.Truncate(dir+"/a", 1<<40); err != nil {
				t.Fatal(err)
			}
		},
		"many large files": func(t *testing.T, dir string) {
			t.Helper()
			for _, name := range []string{"x", "y", "z"} {
				write(t, dir+"/"+name, "")
				if err := os.Truncate(dir+"/"+name, contentMax/2); err != nil {
					t.Fatal(err)
				}
			}
		},
		"a deep tree": func(t *testing.T, dir string) {
			t.Helper()
			write(t, dir+strings.Repeat("/d", depthMax+5)+"/x", "")
		},
		"a directory in a link's place": func(t *testing.T, dir string) { t.Helper(); remove(t, dir+"/../a"); write(t, dir+"/../a/x", "") },
	} {
		t.Run(name, func(t *testing.T) {
			c := newContext(t, configMapVolume("conf"))
			prepare(t, c, "conf")
			dir, err := filepath.EvalSymlinks(filepath.Join(c.dir(t, "conf"), dataLink))
			if err != nil {
				t.Fatal(err)
			}
			plant(t, dir)
			wanted, err := wantedOf(c, "conf")
			if err != nil {
				t.Fatal(err)
			}
			if digest, prepared, err := onDisk(c, "conf"); err != nil || !prepared || digest == wanted {
				t.Errorf("digest %q, prepared %t, %v; want a volume that needs an update", digest, prepared, err)
			}
			prepare(t, c, "conf")
			wantPrepared(t, c, "conf")
			wantText(t, filepath.Join(c.dir(t, "conf"), "a"), "1")
		})
	}
}

// TestClaimNamesThatArePaths checks that a claim whose name is a path is never created, inspected, changed or removed,
// and that other claims are removed nevertheless.
func TestClaimNamesThatArePaths(t *testing.T) {
	c := newContext(t)
	root := filepath.Dir(filepath.Dir(filepath.Dir(c.Pod.Dir())))
	victim := filepath.Join(root, "victim")
	write(t, filepath.Join(victim, "file"), "precious")
	claim := func(name string) v1.Volume {
		return v1.Volume{Name: "data", VolumeSource: v1.VolumeSource{
			PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: name},
		}}
	}
	c.Desired.Pod.Spec.SecurityContext = &v1.PodSecurityContext{FSGroup: new(int64(4711))}
	good := withClaim(c)
	prepare(t, good, "data")
	for _, name := range []string{"../../../victim", "../../pods", victim, "..", ""} {
		c.Desired.Pod.Spec.Volumes = []v1.Volume{claim(name)}
		for what, err := range map[string]error{
			"preparing": Prepare(t.Context(), c, "data"), "looking at": func() error { _, _, err := onDisk(c, "data"); return err }(),
		} {
			if refused := (*state.NameError)(nil); !errors.As(err, &refused) || !strings.Contains(err.Error(), "claimName") {
				t.Errorf("%s claim %q: %v", what, name, err)
			}
		}
	}
	c.Desired.Pod.Spec.Volumes = []v1.Volume{claim("../../../victim"), claim("data")}
	refused, err := RemoveClaims(t.Context(), c, func(string) bool { return false })
	if err != nil || refused == nil || !strings.Contains(refused.Error(), `"../../../victim"`) {
		t.Errorf("removing: %v, refused %v", err, refused)
	}
	wantGone(t, ok(c.Pod.Claims().Dir(state.Claim{Namespace: "default", Name: "data"})))
	wantText(t, filepath.Join(victim, "file"), "precious")
	var st unix.Stat_t
	if err := unix.Stat(victim, &st); err != nil || st.Gid == 4711 {
		t.Errorf("group of the file outside: %d %v", st.Gid, err)
	}
}

// TestClaimsAreRemovedFromOthers checks that no pod can create a claim between the last check of its use and its
// removal.
func TestClaimsAreRemovedFromOthers(t *testing.T) {
	c := withClaim(newContext(t))
	prepare(t, c, "data")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	claim := state.Claim{Namespace: "default", Name: "data"}
	var made error
	if refused, err := RemoveClaims(t.Context(), c, func(string) bool {
		_, made = c.Pod.Claims().Make(ctx, claim, 0o777)
		return true
	}); refused != nil || err != nil {
		t.Error(refused, err)
	}
	if !errors.Is(made, context.Canceled) {
		t.Errorf("another pod has created the claim meanwhile: %v", made)
	}
	if _, err := os.Stat(ok(c.Pod.Claims().Dir(claim))); err != nil {
		t.Error(err)
	}
}

// TestFSGroupIsSafeWhileFilesAreSwapped replaces a container's set-user-ID file while podctl changes the claim's group.
// The replacement is a link out of the claim, or another user's file.
func TestFSGroupIsSafeWhileFilesAreSwapped(t *testing.T) {
	base, outside := t.TempDir(), t.TempDir()
	write(t, filepath.Join(outside, "file"), "precious")
	write(t, filepath.Join(base, "mine"), "")
	write(t, filepath.Join(base, "roots"), "")
	if err := os.Chmod(filepath.Join(base, "mine"), os.ModeSetuid|0o755); err != nil {
		t.Fatal(err)
	}
	symlink(t, outside, filepath.Join(base, "link"))
	write(t, filepath.Join(base, "dir/file"), "")
	stop := repeat(func() {
		_ = exchange(filepath.Join(base, "mine"), filepath.Join(base, "roots"))
		_ = exchange(filepath.Join(base, "link"), filepath.Join(base, "dir"))
	})
	dir, err := safefs.OpenDir(base)
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close() //nolint:errcheck // A handle on a directory.
	for range 500 {
		_ = applyGroup(dir, 4711, readWriteBits, depthMax)
	}
	stop()
	wantMode(t, filepath.Join(outside, "file"), 0o600)
	setuid := 0
	for _, name := range []string{"mine", "roots"} {
		info, err := os.Lstat(filepath.Join(base, name))
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode()&os.ModeSetuid != 0 {
			setuid++
		}
	}
	if setuid > 1 {
		t.Error("the other file has become set-user-id")
	}
	var st unix.Stat_t
	if err := unix.Stat(outside, &st); err != nil || st.Gid == 4711 {
		t.Errorf("group of the file outside: %d %v", st.Gid, err)
	}
}

// TestSubPathsChangeNoOtherDirectory replaces the directory that podctl creates with one of another container in the
// same volume, whose mode must stay.
func TestSubPathsChangeNoOtherDirectory(t *testing.T) {
	base := t.TempDir()
	swapped := filepath.Join(base, "made")
	if err := errors.Join(os.Chmod(base, 0o777), os.Mkdir(swapped, 0o700)); err != nil {
		t.Fatal(err)
	}
	root, err := safefs.OpenDir(base)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close() //nolint:errcheck // A handle on a directory.
	// It was missing when podctl looked.
	handle, err := makeMissing(root, nil, []string{"made"})
	if err != nil {
		t.Fatal(err)
	}
	if err := handle.Close(); err != nil {
		t.Error(err)
	}
	wantMode(t, swapped, os.ModeDir|0o700)
}

// TestHostPathIsCreatedByDescriptor checks that a directory is not named by its path in two calls, because another user
// could replace it between them.
func TestHostPathIsCreatedByDescriptor(t *testing.T) {
	root := filepath.Join(t.TempDir(), "x", "root")
	if err := os.Mkdir(filepath.Dir(root), 0o755); err != nil {
		t.Fatal(err)
	}
	output, err := os.Create(filepath.Join(t.TempDir(), "output"))
	if err != nil {
		t.Fatal(err)
	}
	traced, err := runtimetest.Trace(t.Context(), runtimetest.Program{
		Args:   []string{os.Args[0]},
		Env:    append(os.Environ(), roleEnv+"=hostpath", rootEnv+"="+root),
		Output: output,
	}, 0)
	if err = errors.Join(err, output.Close()); err != nil {
		t.Fatal(err)
	}
	c := withHostPath(crashContext(root))
	wantMode(t, c.dir(t, "host"), os.ModeDir|0o755)
	var made []string
	for _, change := range traced.Changes {
		if strings.HasPrefix(change, "mkdir ") || strings.HasPrefix(change, "chmod ") {
			made = append(made, change)
		}
	}
	if !slices.Equal(made, []string{"mkdir made", "mkdir deeper"}) {
		t.Errorf("created with the calls %q, want one name in an open directory per call, and no chmod", made)
	}
}

// withHostPath adds a hostPath that must be created to the pod.
func withHostPath(c Context) Context {
	base := filepath.Dir(filepath.Dir(filepath.Dir(c.Pod.Dir())))
	c.Desired.Pod.Spec.Volumes = append(c.Desired.Pod.Spec.Volumes,
		hostPathVolume("host", filepath.Join(base, "made", "deeper"), v1.HostPathDirectoryOrCreate))
	return c
}

// TestSubPathsAreNotMadeBehindALinkOfAnotherUser checks that existing paths behind such a link are mounted, as by a
// kubelet, but that none is created.
func TestSubPathsAreNotMadeBehindALinkOfAnotherUser(t *testing.T) {
	dir, victim := t.TempDir(), t.TempDir()
	link := filepath.Join(dir, "link")
	if err := errors.Join(
		os.Symlink(victim, link),
		os.Lchown(link, 65534, 65534),
		os.Mkdir(filepath.Join(victim, "there"), 0o755),
	); err != nil {
		t.Fatal(err)
	}
	if f, err := openSubPath(link, "made/by/root"); err == nil {
		_ = f.Close()
		t.Error("the directory was created")
	}
	if _, err := os.Lstat(filepath.Join(victim, "made")); err == nil {
		t.Error("a directory was created in the target of the link")
	}
	f, err := openSubPath(link, "there")
	if err != nil {
		t.Fatal(err)
	}
	_ = f.Close()
}

// TestDeepGroup checks that a tree of a container that is too deep is refused before all files are open.
func TestDeepGroup(t *testing.T) {
	base := t.TempDir()
	write(t, base+strings.Repeat("/d", depthMax+2)+"/x", "")
	dir, err := safefs.OpenDir(base)
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close() //nolint:errcheck // A handle on a directory.
	if err = applyGroup(dir, os.Getegid(), readWriteBits, depthMax); err == nil || !strings.Contains(err.Error(), "more than 500 directories") {
		t.Error(err)
	}
}
