package volume

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	v1 "k8s.io/api/core/v1"
)

// onDisk returns the state of a volume on disk, as States does.
func onDisk(c Context, name string) (digest string, prepared bool, err error) {
	m, err := c.find(name)
	if err != nil {
		return "", false, err
	}
	wanted, _ := m.wanted()
	return m.onDisk(wanted)
}

// wantedOf returns the digest that the content of a volume should have.
func wantedOf(c Context, name string) (string, error) {
	m, err := c.find(name)
	if err != nil {
		return "", err
	}
	return Wanted(c, m.vol)
}

// faultOf returns the fault of a volume, as States does.
func faultOf(c Context, name string) error {
	m, err := c.find(name)
	if err != nil {
		return err
	}
	_, contentErr := m.wanted()
	return m.fault(contentErr)
}

// wantPrepared compares actual and wanted content, as the planner does.
func wantPrepared(t *testing.T, c Context, name string) {
	t.Helper()
	digest, prepared, err := onDisk(c, name)
	if err != nil || !prepared {
		t.Fatalf("onDisk = %q, %v, %v; want prepared", digest, prepared, err)
	}
	wanted, err := wantedOf(c, name)
	if err != nil || digest != wanted {
		t.Errorf("digest %q, wanted %q (%v)", digest, wanted, err)
	}
}

func wantUnprepared(t *testing.T, c Context, name string) {
	t.Helper()
	if digest, prepared, err := onDisk(c, name); err != nil || prepared || digest != "" {
		t.Errorf("onDisk = %q, %v, %v; want not prepared", digest, prepared, err)
	}
}

func TestEmptyDirOnDisk(t *testing.T) {
	for name, mask := range map[string]int{"open umask": 0, "strict umask": 0o077} {
		t.Run(name, func(t *testing.T) {
			c := newContext(t, emptyDirVolume("tmp"))
			withUmask(t, mask)
			wantUnprepared(t, c, "tmp")
			prepare(t, c, "tmp")
			wantPrepared(t, c, "tmp")
			wantMode(t, c.dir(t, "tmp"), os.ModeDir|0o777)
			wantMode(t, filepath.Dir(c.dir(t, "tmp")), os.ModeDir|0o755)
			wantMode(t, filepath.Dir(filepath.Dir(c.dir(t, "tmp"))), os.ModeDir|0o750)
			wantMode(t, ok(c.Pod.VolumeMarker("empty-dir", "tmp")), 0o644)
			wantMode(t, filepath.Dir(ok(c.Pod.VolumeMarker("empty-dir", "tmp"))), os.ModeDir|0o750)
		})
	}
}

func TestReadyEmptyDirIsUnchanged(t *testing.T) {
	c := newContext(t, emptyDirVolume("tmp"))
	prepare(t, c, "tmp")
	file := filepath.Join(c.dir(t, "tmp"), "data")
	write(t, file, "the pod's")
	if err := os.Chmod(c.dir(t, "tmp"), 0o700); err != nil {
		t.Fatal(err)
	}
	c.Desired.Pod.Spec.SecurityContext = &v1.PodSecurityContext{FSGroup: new(int64(os.Getgid()))}
	prepare(t, c, "tmp")
	wantMode(t, c.dir(t, "tmp"), os.ModeDir|0o700)
	wantMode(t, file, 0o600)
	wantText(t, file, "the pod's")
}

func TestRemovedEmptyDirIsRecreated(t *testing.T) {
	c := newContext(t, emptyDirVolume("tmp"))
	prepare(t, c, "tmp")
	remove(t, c.dir(t, "tmp"))
	wantUnprepared(t, c, "tmp")
	prepare(t, c, "tmp")
	wantMode(t, c.dir(t, "tmp"), os.ModeDir|0o777)
}

func TestEmptyDirWithoutAMarkerKeepsItsContent(t *testing.T) {
	c := newContext(t, emptyDirVolume("tmp"))
	prepare(t, c, "tmp")
	write(t, filepath.Join(c.dir(t, "tmp"), "data"), "kept")
	remove(t, ok(c.Pod.VolumeMarker("empty-dir", "tmp")))
	wantUnprepared(t, c, "tmp")
	prepare(t, c, "tmp")
	wantPrepared(t, c, "tmp")
	wantText(t, filepath.Join(c.dir(t, "tmp"), "data"), "kept")
}

// TestRecreatedEmptyDirIsIncomplete checks that a kill or failure while the medium changes leaves the volume
// incomplete.
func TestRecreatedEmptyDirIsIncomplete(t *testing.T) {
	c := newContext(t, emptyDirVolume("tmp"))
	prepare(t, c, "tmp")
	c.Desired.Pod.Spec.Volumes[0].EmptyDir.Medium = v1.StorageMediumHugePages
	if err := Prepare(t.Context(), c, "tmp"); err == nil {
		t.Fatal("no container requests huge pages")
	}
	wantGone(t, ok(c.Pod.VolumeMarker("empty-dir", "tmp")))
	c.Desired.Pod.Spec.Volumes[0].EmptyDir.Medium = v1.StorageMediumDefault
	wantUnprepared(t, c, "tmp")
	prepare(t, c, "tmp")
	wantPrepared(t, c, "tmp")
}

func TestEmptyDirBelongsToTheGroup(t *testing.T) {
	c := newContext(t, emptyDirVolume("tmp"))
	c.Desired.Pod.Spec.SecurityContext = &v1.PodSecurityContext{FSGroup: new(int64(os.Getgid()))}
	dir := c.dir(t, "tmp")
	write(t, filepath.Join(dir, "sub", "file"), "")
	outside := filepath.Join(t.TempDir(), "outside")
	write(t, outside, "")
	symlink(t, outside, filepath.Join(dir, "link"))
	symlink(t, "nowhere", filepath.Join(dir, "sub", "dangling"))
	if err := os.Chmod(c.Pod.Dir(), 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Dir(filepath.Dir(c.Pod.Dir())), 0o700); err != nil {
		t.Fatal(err)
	}
	prepare(t, c, "tmp")
	wantMode(t, dir, os.ModeDir|os.ModeSetgid|0o777)
	wantMode(t, filepath.Join(dir, "sub"), os.ModeDir|os.ModeSetgid|0o775)
	wantMode(t, filepath.Join(dir, "sub", "file"), 0o660)
	wantMode(t, outside, 0o600)
}

func TestConfigMapIsPreparedAndUpdated(t *testing.T) {
	c := newContext(t, configMapVolume("conf"))
	wantUnprepared(t, c, "conf")
	prepare(t, c, "conf")
	wantPrepared(t, c, "conf")
	dir := c.dir(t, "conf")
	wantMode(t, dir, os.ModeDir|0o777)
	wantMode(t, filepath.Join(dir, "a"), 0o644)
	wantMode(t, ok(c.Pod.VolumeMarker("configmap", "conf")), 0o644)

	conf := c.Desired.Objects.ConfigMaps["conf"]
	conf.Data = map[string]string{"a": "new", "c": "3"}
	digest, prepared, err := onDisk(c, "conf")
	if wanted, wantedErr := wantedOf(c, "conf"); err != nil || wantedErr != nil || !prepared || digest == wanted {
		t.Fatalf("after a change: %q, %v, %v; wanted %q", digest, prepared, err, wanted)
	}
	if err := Prepare(t.Context(), c, "conf"); err != nil {
		t.Fatal(err)
	}
	wantPrepared(t, c, "conf")
	wantText(t, filepath.Join(dir, "a"), "new")
	wantText(t, filepath.Join(dir, "c"), "3")
	wantGone(t, filepath.Join(dir, "b"))
}

func TestContentBelongsToTheGroupOnDisk(t *testing.T) {
	c := newContext(t, configMapVolume("conf", v1.KeyToPath{Key: "a", Path: "sub/a", Mode: new(int32(0o600))}))
	c.Desired.Pod.Spec.SecurityContext = &v1.PodSecurityContext{FSGroup: new(int64(os.Getgid()))}
	prepare(t, c, "conf")
	wantPrepared(t, c, "conf")
	dir := c.dir(t, "conf")
	wantMode(t, filepath.Join(dir, "sub/a"), 0o640)
	wantMode(t, filepath.Join(dir, "sub"), os.ModeDir|os.ModeSetgid|0o755)
	wantMode(t, dir, os.ModeDir|os.ModeSetgid|0o777)
	// An added group is detected, and a removed one too.
	c.Desired.Pod.Spec.SecurityContext = nil
	digest, prepared, err := onDisk(c, "conf")
	if wanted, _ := wantedOf(c, "conf"); err != nil || !prepared || digest == wanted {
		t.Errorf("without the group: %q, %v, %v; wanted %q", digest, prepared, err, wanted)
	}
}

func TestLostLinkChangesTheDigest(t *testing.T) {
	c := newContext(t, configMapVolume("conf"))
	prepare(t, c, "conf")
	for name, tamper := range map[string]func(){
		"missing":   func() { remove(t, filepath.Join(c.dir(t, "conf"), "a")) },
		"too many":  func() { symlink(t, "..data/x", filepath.Join(c.dir(t, "conf"), "x")) },
		"elsewhere": func() { relink(t, "/etc/passwd", filepath.Join(c.dir(t, "conf"), "a")) },
	} {
		tamper()
		digest, prepared, err := onDisk(c, "conf")
		if wanted, _ := wantedOf(c, "conf"); err != nil || !prepared || digest == wanted {
			t.Errorf("%s: onDisk = %q, %v, %v; want a difference", name, digest, prepared, err)
		}
		if err := Prepare(t.Context(), c, "conf"); err != nil {
			t.Fatal(err)
		}
		wantPrepared(t, c, "conf")
	}
}

// TestTamperedContentChangesTheDigest checks that any change or removal of content is detected, and that the next
// preparation repairs it.
func TestTamperedContentChangesTheDigest(t *testing.T) {
	chmod := func(mode os.FileMode, names ...string) func(dir string) error {
		return func(dir string) error { return os.Chmod(filepath.Join(append([]string{dir}, names...)...), mode) }
	}
	for name, tamper := range map[string]func(dir string) error{
		"lost ..data":                  func(dir string) error { return os.Remove(filepath.Join(dir, dataLink)) },
		"another owner":                func(dir string) error { return os.Chown(filepath.Join(dir, dataLink, "a"), 12345, -1) },
		"another owner of a directory": func(dir string) error { return os.Chown(filepath.Join(dir, dataLink, "sub"), 12345, -1) },
		"another mode":                 chmod(0o777, dataLink, "a"),
		"another mode of the content":  chmod(0o700, dataLink),
		"a directory anyone writes":    chmod(0o777, dataLink, "sub"),
		"a directory more": func(dir string) error {
			if err := os.MkdirAll(filepath.Join(dir, "x", "y"), 0o755); err != nil {
				return err
			}
			return os.WriteFile(filepath.Join(dir, "x", "y", "z"), nil, 0o600)
		},
	} {
		for _, group := range []*int64{nil, new(int64(2000))} {
			c := newContext(t, configMapVolume("conf", v1.KeyToPath{Key: "a", Path: "a"}, v1.KeyToPath{Key: "b", Path: "sub/b"}))
			c.Desired.Pod.Spec.SecurityContext = &v1.PodSecurityContext{FSGroup: group}
			prepare(t, c, "conf")
			wantPrepared(t, c, "conf")
			if err := tamper(c.dir(t, "conf")); err != nil {
				t.Fatal(err)
			}
			if digest, prepared, err := onDisk(c, "conf"); err != nil || !prepared || digest == must(t)(wantedOf(c, "conf")) {
				t.Errorf("%s: %q %v %v, want prepared with another digest", name, digest, prepared, err)
			}
			prepare(t, c, "conf")
			wantPrepared(t, c, "conf")
		}
	}
}

// TestEmptyDirectoriesStay checks that empty directories stay, because a container of an earlier manifest may use one
// as mount point.
func TestEmptyDirectoriesStay(t *testing.T) {
	c := newContext(t, configMapVolume("conf"))
	prepare(t, c, "conf")
	point := filepath.Join(c.dir(t, "conf"), "run", "cache")
	if err := os.MkdirAll(point, 0o755); err != nil {
		t.Fatal(err)
	}
	wantPrepared(t, c, "conf")
	c.Desired.Objects.ConfigMaps["conf"].Data["a"] = "2"
	prepare(t, c, "conf")
	wantMode(t, point, os.ModeDir|0o755)
}

func must(t *testing.T) func(text string, err error) string {
	t.Helper()
	return func(text string, err error) string {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
}

func TestUnresolvedVolumeLeavesNothing(t *testing.T) {
	c := newContext(t, configMapVolume("conf"))
	delete(c.Desired.Objects.ConfigMaps, "conf")
	err := Prepare(t.Context(), c, "conf")
	unresolved := (*UnresolvedError)(nil)
	if !errors.As(err, &unresolved) ||
		!strings.HasPrefix(err.Error(), `MountVolume.SetUp failed for volume "conf": spec.volumes[0].configMap.name`) {
		t.Errorf("error %v, want an UnresolvedError with the kubelet's message", err)
	}
	wantGone(t, c.Pod.Dir())
	if _, err := wantedOf(c, "conf"); !errors.As(err, &unresolved) {
		t.Errorf("Wanted: error %v, want an UnresolvedError", err)
	}
}

func TestUnresolvedUpdateKeepsContent(t *testing.T) {
	c := newContext(t, configMapVolume("conf"))
	prepare(t, c, "conf")
	delete(c.Desired.Objects.ConfigMaps, "conf")
	if err := Prepare(t.Context(), c, "conf"); err == nil {
		t.Error("no error")
	}
	wantText(t, filepath.Join(c.dir(t, "conf"), "a"), "1")
}

func TestFailedPreparationLeavesNothing(t *testing.T) {
	c := newContext(t, configMapVolume("conf", v1.KeyToPath{Key: "a", Path: "x"}, v1.KeyToPath{Key: "b", Path: "x/y"}))
	if err := Prepare(t.Context(), c, "conf"); err == nil {
		t.Fatal("a file that is a directory as well: no error")
	}
	wantGone(t, c.dir(t, "conf"))
	wantGone(t, filepath.Dir(ok(c.Pod.VolumeMarker("configmap", "conf"))))
}

// TestFailedEmptyDirKeepsFiles checks that a failure leaves no directory if there was none, and keeps the pod's
// files if there was one.
func TestFailedEmptyDirKeepsFiles(t *testing.T) {
	vol := emptyDirVolume("tmp")
	vol.EmptyDir.Medium = v1.StorageMediumHugePages
	c := newContext(t, vol)
	dir := c.dir(t, "tmp")
	if err := Prepare(t.Context(), c, "tmp"); err == nil {
		t.Fatal("huge pages that no container requests: no error")
	}
	wantGone(t, dir)
	wantGone(t, filepath.Dir(ok(c.Pod.VolumeMarker("empty-dir", "tmp"))))
	write(t, filepath.Join(dir, "data"), "kept")
	if err := Prepare(t.Context(), c, "tmp"); err == nil {
		t.Fatal("huge pages that no container requests: no error")
	}
	wantText(t, filepath.Join(dir, "data"), "kept")
}

func TestFailedUpdateKeepsTheVolume(t *testing.T) {
	c := newContext(t, configMapVolume("conf", v1.KeyToPath{Key: "a", Path: "x"}))
	prepare(t, c, "conf")
	c.Desired.Pod.Spec.Volumes[0].ConfigMap.Items = []v1.KeyToPath{{Key: "a", Path: "x"}, {Key: "b", Path: "x/y"}}
	if err := Prepare(t.Context(), c, "conf"); err == nil {
		t.Fatal("a file that is a directory as well: no error")
	}
	wantText(t, filepath.Join(c.dir(t, "conf"), "x"), "1")
	if _, err := os.Stat(ok(c.Pod.VolumeMarker("configmap", "conf"))); err != nil {
		t.Error(err)
	}
}

func TestCanceledContextPreparesNothing(t *testing.T) {
	c := newContext(t, emptyDirVolume("tmp"))
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("the user pressed Ctrl-C")
	cancel(cause)
	if err := Prepare(ctx, c, "tmp"); !errors.Is(err, cause) {
		t.Errorf("error %v, want the cause", err)
	}
	wantGone(t, c.Pod.Dir())
}

// TestVolumesArePreparedInParallel prepares all volumes of a pod at once, each of them twice, as independent steps of a
// plan.
func TestVolumesArePreparedInParallel(t *testing.T) {
	volumes := make([]v1.Volume, 0, 20)
	for i := range 10 {
		volumes = append(volumes, emptyDirVolume(fmt.Sprintf("tmp-%d", i)), configMapVolume(fmt.Sprintf("conf-%d", i)))
	}
	c := newContext(t, volumes...)
	var all sync.WaitGroup
	for i := range volumes {
		all.Go(func() {
			if err := Prepare(t.Context(), c, volumes[i].Name); err != nil {
				t.Error(err)
			}
		})
	}
	all.Go(func() {
		if err := WriteEtcHosts(c.Pod, []byte("127.0.0.1\tlocalhost\n")); err != nil {
			t.Error(err)
		}
	})
	all.Wait()
	for i := range volumes {
		wantPrepared(t, c, volumes[i].Name)
	}
}

func TestOnDiskChangesNothing(t *testing.T) {
	c := newContext(t, emptyDirVolume("tmp"), configMapVolume("conf"),
		hostPathVolume("host", filepath.Join(t.TempDir(), "x"), v1.HostPathDirectoryOrCreate))
	for _, name := range []string{"tmp", "conf", "host"} {
		wantUnprepared(t, c, name)
		if _, err := wantedOf(c, name); err != nil {
			t.Error(err)
		}
	}
	wantGone(t, filepath.Dir(filepath.Dir(c.Pod.Dir())))
	wantGone(t, c.Desired.Pod.Spec.Volumes[2].HostPath.Path)
}

func TestVolumeThatIsAFileIsNotPrepared(t *testing.T) {
	c := newContext(t, emptyDirVolume("tmp"))
	prepare(t, c, "tmp")
	remove(t, c.dir(t, "tmp"))
	write(t, c.dir(t, "tmp"), "a file")
	wantUnprepared(t, c, "tmp")
	if err := Prepare(t.Context(), c, "tmp"); err == nil {
		t.Error("preparing it over a file succeeded, want an error")
	}
	wantText(t, c.dir(t, "tmp"), "a file")
}

// TestVolumeOfAKubeletIsTakenOver takes over a volume that was written as by a kubelet.
func TestVolumeOfAKubeletIsTakenOver(t *testing.T) {
	c := newContext(t, configMapVolume("conf"))
	dir := c.dir(t, "conf")
	times := filepath.Join(dir, "..2026_03_01_12_30_15.1234567890")
	for name, text := range map[string]string{"a": "1", "b": "2", "bin": "\x00\xff"} {
		write(t, filepath.Join(times, name), text)
		if err := os.Chmod(filepath.Join(times, name), 0o644); err != nil {
			t.Fatal(err)
		}
		symlink(t, filepath.Join("..data", name), filepath.Join(dir, name))
	}
	symlink(t, filepath.Base(times), filepath.Join(dir, dataLink))
	write(t, filepath.Join(c.Pod.Plugins(), "kubernetes.io~empty-dir/wrapped_conf/ready"), "")
	for _, path := range []string{filepath.Dir(filepath.Dir(c.Pod.Dir())), c.Pod.Dir()} {
		if err := os.Chmod(path, 0o750); err != nil {
			t.Fatal(err)
		}
	}
	wantPrepared(t, c, "conf")
	prepare(t, c, "conf")
	if got := names(t, times); len(got) != 3 {
		t.Errorf("the content was written again: %v", got)
	}
}

// TestNewMountPointsAreMade checks that a volume is prepared again if another volume is now mounted in it. The runtime
// cannot create that mount point.
func TestNewMountPointsAreMade(t *testing.T) {
	c := newContext(t, configMapVolume("conf"), emptyDirVolume("data"))
	prepare(t, c, "conf")
	wantPrepared(t, c, "conf")
	mounts := c.Desired.Pod.Spec.Containers[0].VolumeMounts
	mounts[1].MountPath = mounts[0].MountPath + "/sub/dir"
	wantUnprepared(t, c, "conf")
	prepare(t, c, "conf")
	wantPrepared(t, c, "conf")
	if info, err := os.Stat(filepath.Join(c.dir(t, "conf"), "sub", "dir")); err != nil || !info.IsDir() {
		t.Error(err)
	}
	// Changed content is updated nevertheless.
	mounts[1].MountPath = mounts[0].MountPath + "/other"
	c.Desired.Objects.ConfigMaps["conf"].Data["a"] = "new"
	if digest, prepared, err := onDisk(c, "conf"); digest == "" || !prepared || err != nil {
		t.Errorf("with other content: %q, %t, %v", digest, prepared, err)
	}
}
