package gc

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/podspec/input"
	"github.com/podctl/podctl/podspec/load"
	"github.com/podctl/podctl/runtime/cgroup"
	"github.com/podctl/podctl/runtime/cri"
	"github.com/podctl/podctl/runtime/criconfig"
	"github.com/podctl/podctl/runtime/filelock"
	"github.com/podctl/podctl/runtime/images"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/observe"
	"github.com/podctl/podctl/runtime/runtimetest"
	"github.com/podctl/podctl/runtime/state"
)

// lab is a Collector with an in-memory runtime, in which tests create records one by one.
type lab struct {
	*Collector
	t      *testing.T
	server *runtimetest.Server
	clock  *runtimetest.Clock
	groups *runtimetest.Cgroups
	// kubelet is the result of the search for a kubelet.
	kubelet error
}

func newLab(t *testing.T) *lab {
	t.Helper()
	server, clock, endpoint := runtimetest.Start(t, "i:1")
	client, err := cri.Connect(cri.Endpoint{Address: endpoint, Origin: "test"}, "", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	l := &lab{t: t, server: server, clock: clock, groups: runtimetest.NewCgroups(server)}
	w := observe.World{Client: client, Layout: state.Layout{Root: t.TempDir(), LogRoot: t.TempDir()}, Cgroups: l.groups, Now: clock.Now}
	host := observe.NewHost(client, w.Layout, observe.Sources{
		Machine: func() criconfig.Node { return criconfig.Node{Name: "node"} }, Kubelet: func() error { return l.kubelet },
	})
	l.Collector = New(w, host, images.NewStore(client, w.Layout))
	return l
}

// remembered creates a pod with a checkpoint.
func (l *lab) remembered(name string) model.PodRef {
	l.t.Helper()
	text := "apiVersion: v1\nkind: Pod\nmetadata: {name: " +
		name + "}\nspec:\n  containers: [{name: a, image: 'i:1', volumeMounts: [{name: c, mountPath: /c}]}]\n" +
		"  volumes: [{name: c, persistentVolumeClaim: {claimName: data}}]\n"
	m, err := load.Load(l.t.Context(), input.Reader{Stdin: strings.NewReader(text)}, "-")
	if err != nil || m.Err() != nil {
		l.t.Fatal(err, m.Err())
	}
	ref := model.RefOf(m.Pods[0].Pod)
	if err := l.layout.Pod(ref.UID).Checkpoint().Write(&state.Checkpoint{Memory: model.Memory{Applied: m.Pods[0]}}); err != nil {
		l.t.Fatal(err)
	}
	return ref
}

func labelsOf(ref model.PodRef) map[string]string {
	return map[string]string{
		criconfig.LabelPodName:      ref.Name,
		criconfig.LabelPodNamespace: ref.Namespace,
		criconfig.LabelPodUID:       string(ref.UID),
	}
}

// sandbox creates a sandbox of podctl, with the pod's log directory.
func (l *lab) sandbox(ref model.PodRef, attempt uint32) string {
	l.t.Helper()
	logs, err := l.layout.Pod(ref.UID).Logs(ref.Namespace, ref.Name).Dir()
	if err == nil {
		err = l.layout.Pod(ref.UID).Logs(ref.Namespace, ref.Name).Make("a")
	}
	if err != nil {
		l.t.Fatal(err)
	}
	reply, err := l.client.RunPodSandbox(l.t.Context(), &runtimeapi.RunPodSandboxRequest{Config: &runtimeapi.PodSandboxConfig{
		Metadata: &runtimeapi.PodSandboxMetadata{Name: ref.Name, Namespace: ref.Namespace, Uid: string(ref.UID), Attempt: attempt},
		Labels:   labelsOf(ref), Annotations: ours(), LogDirectory: logs,
	}})
	if err != nil {
		l.t.Fatal(err)
	}
	return reply.GetPodSandboxId()
}

// container creates a running container of podctl.
func (l *lab) container(ref model.PodRef, sandbox string, attempt uint32) string {
	l.t.Helper()
	name := string(rune('0'+attempt)) + ".log"
	config := &runtimeapi.ContainerConfig{
		Metadata: &runtimeapi.ContainerMetadata{Name: "a", Attempt: attempt}, Image: &runtimeapi.ImageSpec{Image: "i:1"},
		Labels: labelsOf(ref), Annotations: ours(), LogPath: "a/" + name,
	}
	request := &runtimeapi.CreateContainerRequest{PodSandboxId: sandbox, Config: config}
	reply, err := l.client.CreateContainer(l.t.Context(), request)
	if err == nil {
		_, err = l.client.StartContainer(l.t.Context(), &runtimeapi.StartContainerRequest{ContainerId: reply.GetContainerId()})
	}
	if err != nil {
		l.t.Fatal(err)
	}
	return reply.GetContainerId()
}

// ended creates an exited container.
func (l *lab) ended(ref model.PodRef, sandbox string, attempt uint32) string {
	id := l.container(ref, sandbox, attempt)
	l.server.Exit("a", 1)
	return id
}

// list returns the garbage that List finds.
func (l *lab) list() []Garbage {
	l.t.Helper()
	found, err := l.List(l.t.Context())
	if err != nil {
		l.t.Fatal(err)
	}
	return found
}

func kinds(found []Garbage) []GarbageKind {
	all := []GarbageKind{}
	for i := range found {
		all = append(all, found[i].Kind)
	}
	return all
}

// log returns the path of a log of container a.
func (l *lab) log(ref model.PodRef, attempt uint32) string {
	l.t.Helper()
	path, err := l.layout.Pod(ref.UID).Logs(ref.Namespace, ref.Name).File("a", attempt)
	if err != nil {
		l.t.Fatal(err)
	}
	return path
}

func there(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// TestDeadRecordsAreRemoved checks that a record with a newer one is removed with its log, and that the newest stays
// with its log.
func TestDeadRecordsAreRemoved(t *testing.T) {
	l := newLab(t)
	ref := l.remembered("web")
	sandbox := l.sandbox(ref, 0)
	old := l.ended(ref, sandbox, 0)
	l.ended(ref, sandbox, 1)
	found := l.list()
	if len(found) != 1 || found[0].Kind != GarbageContainer || found[0].ID != old {
		t.Fatalf("found %+v", found)
	}
	if err := l.Remove(t.Context(), found[0]); err != nil {
		t.Fatal(err)
	}
	if there(l.log(ref, 0)) || !there(l.log(ref, 1)) || len(l.list()) > 0 {
		t.Errorf("logs are left: %t, %t; found %+v", there(l.log(ref, 0)), there(l.log(ref, 1)), l.list())
	}
	if err := l.Remove(t.Context(), found[0]); !errors.Is(err, ErrNeeded) {
		t.Errorf("removed again: %v", err)
	}
}

// TestSharedLogsStay checks that a shared log stays. Attempts start at zero in a new sandbox, so a kept record may use
// the log of a removed one.
func TestSharedLogsStay(t *testing.T) {
	l := newLab(t)
	ref := l.remembered("web")
	containers := []*runtimeapi.Container{record("1", "a", "s1", 0, 0), record("2", "a", "s2", 0, 0), record("3", "a", "s2", 1, 0)}
	for id, want := range map[string]bool{"1": true, "3": false} {
		g := &Garbage{Pod: ref, ID: id, Name: "a", Attempt: map[string]uint32{"1": 0, "3": 1}[id]}
		if got := (&leftovers{containers: containers}).sharesLog(g); got != want {
			t.Errorf("record %s shares its log: %t", id, got)
		}
	}
	// Its size is counted with the record that stays.
	l.sandbox(ref, 0)
	for _, attempt := range []uint32{0, 1} {
		if err := os.WriteFile(l.log(ref, attempt), make([]byte, 8192), 0o600); err != nil {
			t.Fatal(err)
		}
		g := &Garbage{Kind: GarbageContainer, Pod: ref, ID: []string{"1", "3"}[attempt], Name: "a", Attempt: attempt}
		x := &Collector{layout: l.layout}
		if size := x.size(&leftovers{containers: containers}, g, func(string) int64 { return 1 }); (size == 1) != (attempt == 0) {
			t.Errorf("the record of attempt %d takes %d", attempt, size)
		}
	}
}

// TestLostPodsAreRemoved checks that a pod without a checkpoint is removed completely if no container runs: records,
// sandbox, logs, directory and cgroup. While a container runs, nothing is removed.
func TestLostPodsAreRemoved(t *testing.T) {
	l := newLab(t)
	ref := model.PodRef{Namespace: "default", Name: "lost", UID: "lost"}
	sandbox := l.sandbox(ref, 0)
	l.container(ref, sandbox, 0)
	names := criconfig.CgroupParents(ref.UID, l.host.Node())
	dir := l.layout.Pod(ref.UID)
	if err := errors.Join(l.groups.Ensure(names[0], cgroup.Resources{}), dir.MakeDir(dir.Volumes(), 0o700)); err != nil {
		t.Fatal(err)
	}
	if found := l.list(); len(found) > 0 {
		t.Errorf("of a pod that runs: %+v", found)
	}
	l.server.Exit("a", 0)
	found := l.list()
	if diff := cmp.Diff([]GarbageKind{GarbageSandbox, GarbageFiles}, kinds(found)); diff != "" {
		t.Fatalf("(-want +got)\n%s", diff)
	}
	for _, g := range found {
		if err := l.Remove(t.Context(), g); err != nil {
			t.Errorf("%s: %v", g.Kind, err)
		}
	}
	logs, _ := dir.Logs(ref.Namespace, ref.Name).Dir()
	if there(dir.Dir()) || there(logs) || l.groups.Exists(names[0]) || len(l.list()) > 0 {
		t.Errorf("left: directory %t, logs %t, cgroup %t, %+v", there(dir.Dir()), there(logs), l.groups.Exists(names[0]), l.list())
	}
}

// TestFilesOfLostPods checks that the directory and cgroup of a pod without objects in the runtime are removed.
func TestFilesOfLostPods(t *testing.T) {
	l := newLab(t)
	dir, name := l.layout.Pod("lost"), criconfig.CgroupParents("lost", l.host.Node())[0]
	if err := errors.Join(l.groups.Ensure(name, cgroup.Resources{}), dir.MakeDir(dir.Volumes(), 0o700)); err != nil {
		t.Fatal(err)
	}
	found := l.list()
	if diff := cmp.Diff([]GarbageKind{GarbageFiles}, kinds(found)); diff != "" {
		t.Fatalf("(-want +got)\n%s", diff)
	}
	if err := l.Remove(t.Context(), found[0]); err != nil || there(dir.Dir()) || l.groups.Exists(name) {
		t.Errorf("%v: directory %t, cgroup %t", err, there(dir.Dir()), l.groups.Exists(name))
	}
}

// TestKubeletFilesAreKept checks that the directory and the full log of a pod stay if they may belong to a kubelet,
// which uses the same layout.
func TestKubeletFilesAreKept(t *testing.T) {
	l := newLab(t)
	l.kubelet = errors.New("a kubelet runs")
	dir := l.layout.Pod("lost")
	if err := dir.MakeDir(dir.Volumes(), 0o700); err != nil {
		t.Fatal(err)
	}
	ref := l.remembered("web")
	l.container(ref, l.sandbox(ref, 0), 0)
	if err := os.Truncate(l.log(ref, 0), 20<<20); err != nil {
		t.Fatal(err)
	}
	if found := l.list(); len(found) > 0 {
		t.Errorf("found %+v", found)
	}
}

// TestPodsThatComeBack checks that garbage is verified again under the pod's lock, and kept if it is needed by then.
func TestPodsThatComeBack(t *testing.T) {
	l := newLab(t)
	ref := l.remembered("web")
	checkpoint := l.layout.Pod(ref.UID).Checkpoint()
	if err := checkpoint.Remove(); err != nil {
		t.Fatal(err)
	}
	sandbox := l.sandbox(ref, 0)
	events := l.layout.Pod(ref.UID).History()
	if err := events.Write(&state.History{Pod: ref, Events: []state.PodEvent{{Reason: "Started"}}}); err != nil {
		t.Fatal(err)
	}
	found := l.list()
	if diff := cmp.Diff([]GarbageKind{GarbageSandbox, GarbageEvents}, kinds(found)); diff != "" {
		t.Fatalf("(-want +got)\n%s", diff)
	}
	l.remembered("web")
	l.container(ref, sandbox, 0)
	if again := l.list(); len(again) > 0 {
		t.Errorf("of a pod that came back: %+v", again)
	}
	for _, g := range found {
		if err := l.Remove(t.Context(), g); !errors.Is(err, ErrNeeded) {
			t.Errorf("%s: %v", g.Kind, err)
		}
	}
	if err := checkpoint.Remove(); err != nil {
		t.Fatal(err)
	}
	if err := l.Remove(t.Context(), found[1]); err != nil || there(events.Path()) {
		t.Errorf("events of a pod that is gone: %v", err)
	}
}

// TestRemovalsWaitForTheLock checks that a pod that another process works on is not changed.
func TestRemovalsWaitForTheLock(t *testing.T) {
	l := newLab(t)
	ref := model.PodRef{Namespace: "default", Name: "lost", UID: "lost"}
	l.sandbox(ref, 0)
	found := l.list()
	lock, err := l.layout.Pod(ref.UID).Lock(t.Context())
	if err != nil || len(found) != 1 {
		t.Fatal(err, found)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	locked := (*filelock.LockedError)(nil)
	if err := l.Remove(ctx, found[0]); !errors.As(err, &locked) {
		t.Errorf("error %v", err)
	}
	if err := lock.Unlock(); err != nil {
		t.Fatal(err)
	}
	if err := l.Remove(t.Context(), found[0]); err != nil {
		t.Error(err)
	}
}

// TestFullLogsAreRotated checks that the full log of a running container is renamed, that the runtime opens a new one,
// and that the oldest logs are removed. It is not rotated twice.
func TestFullLogsAreRotated(t *testing.T) {
	l := newLab(t)
	ref := l.remembered("web")
	l.container(ref, l.sandbox(ref, 0), 0)
	for range 6 {
		if err := os.Truncate(l.log(ref, 0), 20<<20); err != nil {
			t.Fatal(err)
		}
		found := l.list()
		if diff := cmp.Diff([]GarbageKind{GarbageFullLog}, kinds(found)); diff != "" {
			t.Fatalf("(-want +got)\n%s", diff)
		}
		if err := l.Remove(t.Context(), found[0]); err != nil {
			t.Fatal(err)
		}
		if err := l.Remove(t.Context(), found[0]); !errors.Is(err, ErrNeeded) {
			t.Errorf("rotated again: %v", err)
		}
		l.clock.Advance(time.Minute)
	}
	logs, err := os.ReadDir(filepath.Dir(l.log(ref, 0)))
	if err != nil || len(logs) != 5 || !there(l.log(ref, 0)) {
		t.Errorf("%d logs, %v", len(logs), err)
	}
}

// lockLogs locks the logs of a container like another process that rotates them.
func (l *lab) lockLogs(ref model.PodRef) *os.File {
	l.t.Helper()
	lock, err := state.LockLogs(l.layout.Pod(ref.UID), "a")
	if err != nil || lock == nil {
		l.t.Fatal(lock, err)
	}
	return lock
}

// lockDir locks the directory of the logs like a user who may read it.
func (l *lab) lockDir(ref model.PodRef) {
	l.t.Helper()
	file, err := os.Open(filepath.Dir(l.log(ref, 0)))
	if err == nil {
		l.t.Cleanup(func() { _ = file.Close() })
		err = unix.Flock(int(file.Fd()), unix.LOCK_EX)
	}
	if err != nil {
		l.t.Fatal(err)
	}
}

// rotated returns how many rotated logs a container has.
func (l *lab) rotated(ref model.PodRef) int {
	l.t.Helper()
	logs, err := os.ReadDir(filepath.Dir(l.log(ref, 0)))
	if err != nil {
		l.t.Fatal(err)
	}
	return len(logs) - 1
}

// TestRotationsThatFail checks that the log keeps its name if the runtime does not open a new one, because it continues
// to write to the old file. Within one second a log is rotated once, and by one process at a time. Users who may read the
// logs cannot prevent it.
func TestRotationsThatFail(t *testing.T) {
	l := newLab(t)
	l.rotator.limits.Size = 1
	ref := l.remembered("web")
	id := l.container(ref, l.sandbox(ref, 0), 0)
	log := &RunLog{Pod: ref, Container: "a", ContainerID: id}
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(l.log(ref, 0), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	read := func() string {
		t.Helper()
		text, err := os.ReadFile(l.log(ref, 0))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	write("first")
	l.server.Fail(runtimetest.Fault{Method: "ReopenContainerLog", Times: 1, Err: errors.New("injected failure")})
	if err := l.rotator.Rotate(t.Context(), log); err == nil || !strings.Contains(err.Error(), "rotating the log") || read() != "first" {
		t.Errorf("%v, the log has %q", err, read())
	}
	if err := l.rotator.Rotate(t.Context(), log); err != nil || read() != "" {
		t.Errorf("%v, the log has %q", err, read())
	}
	write("second")
	if err := l.rotator.Rotate(t.Context(), log); err != nil || read() != "second" {
		t.Errorf("in the same second: %v, the log has %q", err, read())
	}
	l.clock.Advance(time.Minute)
	l.lockDir(ref)
	busy := l.lockLogs(ref)
	if err := l.rotator.Rotate(t.Context(), log); err != nil || read() != "second" {
		t.Errorf("while another process rotates: %v, the log has %q", err, read())
	}
	if err := busy.Close(); err != nil {
		t.Fatal(err)
	}
	if err := l.rotator.Rotate(t.Context(), log); err != nil || read() != "" {
		t.Errorf("once the other process is done: %v, the log has %q", err, read())
	}
	if err := l.rotator.Rotate(t.Context(), log); err != nil || read() != "" {
		t.Errorf("a log that was just rotated: %v, the log has %q", err, read())
	}
	if rotated := l.rotated(ref); rotated != 2 {
		t.Errorf("%d rotated logs", rotated)
	}
	if err := l.rotator.Rotate(t.Context(), &RunLog{Pod: ref, Container: "../a"}); !errors.As(err, new(*state.NameError)) {
		t.Errorf("a name that leads elsewhere: %v", err)
	}
}

// TestClaimsOfPods checks that an unused claim is found and removed, and that one that is used by then stays. While the
// users are unknown, all claims stay.
func TestClaimsOfPods(t *testing.T) {
	l := newLab(t)
	claim := func(name string) {
		t.Helper()
		dir, err := l.layout.Claims().Make(t.Context(), state.Claim{Namespace: "default", Name: name}, 0o700)
		if err == nil {
			err = dir.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	claim("data")
	claim("unused")
	all, err := l.UnusedClaims(t.Context())
	if err != nil || len(all) != 2 {
		t.Fatal(all, err)
	}
	ref := l.remembered("web")
	unused, err := l.UnusedClaims(t.Context())
	if err != nil || len(unused) != 1 || unused[0].Claim != "unused" || unused[0].Kind != GarbageClaim {
		t.Errorf("%+v, %v", unused, err)
	}
	i := slices.IndexFunc(all, func(g Garbage) bool { return g.Claim == "data" })
	if err = l.Remove(t.Context(), all[i]); !errors.Is(err, ErrNeeded) || !there(all[i].Path) {
		t.Errorf("a claim that is used: %v", err)
	}
	if err = l.Remove(t.Context(), all[1-i]); err != nil || there(all[1-i].Path) {
		t.Errorf("a claim that is not: %v", err)
	}
	if found, usersErr := l.ClaimUsers(t.Context(), ref); usersErr != nil || len(found.users) > 0 {
		t.Errorf("beside the pod: %v, %v", found, usersErr)
	}
	file := l.layout.Pod(ref.UID).Checkpoint()
	checkpoint, err := file.Read()
	if err != nil {
		t.Fatal(err)
	}
	checkpoint.Applied.Owner = podspec.OwnerAPI
	if err := file.Write(checkpoint); err != nil {
		t.Fatal(err)
	}
	if found, err := l.ClaimUsers(t.Context(), model.PodRef{}); err != nil || len(found.users) > 0 {
		t.Errorf("a pod of the API server: %v, %v", found, err)
	}
	if err := os.WriteFile(l.layout.Pod(ref.UID).Checkpoint().Path(), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := l.UnusedClaims(t.Context()); err == nil || !strings.Contains(err.Error(), "cannot be read may use it") {
		t.Errorf("with a checkpoint that cannot be read: %v", err)
	}
}

// TestClaimsOfLostPods checks that a pod of podctl without a checkpoint may use any claim, and that a kubelet's pod
// uses none.
func TestClaimsOfLostPods(t *testing.T) {
	l := newLab(t)
	kubelets := model.PodRef{Namespace: "kube-system", Name: "dns", UID: "dns"}
	if _, err := l.client.RunPodSandbox(t.Context(), &runtimeapi.RunPodSandboxRequest{Config: &runtimeapi.PodSandboxConfig{
		Metadata: &runtimeapi.PodSandboxMetadata{Name: "dns", Uid: "dns"}, Labels: labelsOf(kubelets),
	}}); err != nil {
		t.Fatal(err)
	}
	if _, err := l.ClaimUsers(t.Context(), model.PodRef{}); err != nil {
		t.Errorf("beside a kubelet's pod: %v", err)
	}
	l.sandbox(model.PodRef{Namespace: "default", Name: "lost", UID: "lost"}, 0)
	if _, err := l.ClaimUsers(t.Context(), model.PodRef{}); err == nil ||
		!strings.Contains(err.Error(), "pod default/lost, which has no checkpoint, may use it") {
		t.Errorf("error %v", err)
	}
}

// TestLogsOfDeletedPods checks that they are found with their size, and removed.
func TestLogsOfDeletedPods(t *testing.T) {
	l := newLab(t)
	ref := l.remembered("web")
	logs := l.layout.Pod(ref.UID).Logs(ref.Namespace, ref.Name)
	if err := errors.Join(logs.Make("a"), os.WriteFile(l.log(ref, 0), []byte("text"), 0o600), logs.Archive(l.clock.Now())); err != nil {
		t.Fatal(err)
	}
	found := l.list()
	if len(found) != 1 || found[0].Kind != GarbageLogs || found[0].Pod != ref || found[0].Size == 0 {
		t.Fatalf("found %+v", found)
	}
	if err := l.Remove(t.Context(), found[0]); err != nil || there(found[0].Path) {
		t.Error(err)
	}
}

// TestNoGarbageWithoutLists checks that nothing is garbage if the runtime does not list its objects.
func TestNoGarbageWithoutLists(t *testing.T) {
	for method, want := range map[string]string{"ListPodSandbox": "listing sandboxes", "ListContainers": "listing containers"} {
		l := newLab(t)
		l.sandbox(model.PodRef{Namespace: "default", Name: "lost", UID: "lost"}, 0)
		l.server.Fail(runtimetest.Fault{Method: method, Times: 1, Err: errors.New("injected failure")})
		if found, err := l.List(t.Context()); len(found) > 0 || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %+v, %v", method, found, err)
		}
	}
}
