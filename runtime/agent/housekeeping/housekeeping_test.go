package housekeeping

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podctl/podctl/podspec/input"
	"github.com/podctl/podctl/podspec/load"
	"github.com/podctl/podctl/runtime/cri"
	"github.com/podctl/podctl/runtime/criconfig"
	"github.com/podctl/podctl/runtime/gc"
	"github.com/podctl/podctl/runtime/imageaccess"
	"github.com/podctl/podctl/runtime/images"
	"github.com/podctl/podctl/runtime/logfile"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/observe"
	"github.com/podctl/podctl/runtime/runtimetest"
	"github.com/podctl/podctl/runtime/state"
	"github.com/podctl/podctl/runtime/state/statedir"
)

// minAge is the minimum age of images in the tests.
const minAge = 2 * time.Minute

// lab is a Housekeeper on a runtime in memory.
type lab struct {
	*Housekeeper
	t      *testing.T
	server *runtimetest.Server
	proxy  *runtimetest.Proxy
	clock  *runtimetest.Clock
	client *cri.Client
	layout state.Layout
	kept   []model.PodRef
	log    bytes.Buffer
	disk   usage
}

func newLab(t *testing.T, s Settings) *lab {
	t.Helper()
	server, clock, endpoint := runtimetest.Start(t, "i:1")
	socket := t.TempDir() + "/proxy.sock"
	proxy, err := runtimetest.StartProxy(t.Context(), socket, strings.TrimPrefix(endpoint, "unix://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = proxy.Close() })
	client, err := cri.Connect(cri.Endpoint{Address: "unix://" + socket, Origin: "test"}, "", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	l := &lab{
		t: t, server: server, proxy: proxy, clock: clock, client: client, disk: usage{1000, 500},
		layout: state.Layout{Root: t.TempDir(), LogRoot: t.TempDir()},
	}
	w := observe.World{
		Client:  client,
		Layout:  l.layout,
		Cgroups: runtimetest.NewCgroups(server),
		Now:     clock.Now,
		Logs:    logfile.Limits{Size: 1000, Files: 3},
	}
	host := observe.NewHost(client, w.Layout, observe.Sources{
		Machine: func() criconfig.Node { return criconfig.Node{Name: "node"} }, Kubelet: func() error { return nil },
	})
	store := images.NewStore(client, w.Layout)
	s.Now, s.Log = clock.Now, slog.New(slog.NewTextHandler(&l.log, nil))
	s.Images.High, s.Images.Low, s.Images.MinAge = 85, 80, minAge
	l.Housekeeper = New(World{
		Garbage: gc.New(w, host, store), Images: store,
		Disk: func(string) (int64, int64, error) { return l.disk.Capacity, l.disk.Available, nil },
	}, s)
	l.pods = func(context.Context) []model.PodRef { return l.kept }
	return l
}

// pod creates a kept pod with a sandbox.
func (l *lab) pod(name, image string) (ref model.PodRef, sandbox string) {
	l.t.Helper()
	text := "apiVersion: v1\nkind: Pod\nmetadata: {name: " + name + "}\nspec:\n  containers: [{name: a, image: '" + image + "'}]\n"
	m, err := load.Load(l.t.Context(), input.Reader{Stdin: strings.NewReader(text)}, "-")
	if err = errors.Join(err, m.Err()); err != nil {
		l.t.Fatal(err)
	}
	ref = model.RefOf(m.Pods[0].Pod)
	logs := l.layout.Pod(ref.UID).Logs(ref.Namespace, ref.Name)
	dir, err := logs.Dir()
	j := &state.Checkpoint{Memory: model.Memory{Applied: m.Pods[0]}}
	if err = errors.Join(err, logs.Make("a"), l.layout.Pod(ref.UID).Checkpoint().Write(j)); err != nil {
		l.t.Fatal(err)
	}
	reply, err := l.client.RunPodSandbox(l.t.Context(), &runtimeapi.RunPodSandboxRequest{Config: &runtimeapi.PodSandboxConfig{
		Metadata: &runtimeapi.PodSandboxMetadata{Name: ref.Name, Namespace: ref.Namespace, Uid: string(ref.UID)},
		Labels:   labelsOf(ref), Annotations: ours(), LogDirectory: dir,
	}})
	if err != nil {
		l.t.Fatal(err)
	}
	l.kept = append(l.kept, ref)
	return ref, reply.GetPodSandboxId()
}

func ours() map[string]string { return map[string]string{criconfig.AnnotationSandboxSpecHash: "v1:x"} }

func labelsOf(ref model.PodRef) map[string]string {
	return map[string]string{
		criconfig.LabelPodName:      ref.Name,
		criconfig.LabelPodNamespace: ref.Namespace,
		criconfig.LabelPodUID:       string(ref.UID),
	}
}

// run starts a container of a pod, and returns its ID and its log.
func (l *lab) run(ref model.PodRef, sandbox, image string, attempt uint32) (id, log string) {
	l.t.Helper()
	log, err := l.layout.Pod(ref.UID).Logs(ref.Namespace, ref.Name).File("a", attempt)
	if err != nil {
		l.t.Fatal(err)
	}
	reply, err := l.client.CreateContainer(l.t.Context(), &runtimeapi.CreateContainerRequest{
		PodSandboxId: sandbox,
		Config: &runtimeapi.ContainerConfig{
			Metadata:    &runtimeapi.ContainerMetadata{Name: "a", Attempt: attempt},
			Image:       &runtimeapi.ImageSpec{Image: image},
			Labels:      labelsOf(ref),
			Annotations: ours(),
			LogPath:     "a/" + log[strings.LastIndex(log, "/")+1:],
		},
	})
	if err == nil {
		_, err = l.client.StartContainer(l.t.Context(), &runtimeapi.StartContainerRequest{ContainerId: reply.GetContainerId()})
	}
	if err != nil {
		l.t.Fatal(err)
	}
	return reply.GetContainerId(), log
}

// calls runs a task, and returns its calls to the runtime and its log lines.
func (l *lab) calls(c task) (calls []string, lines string) {
	l.t.Helper()
	before := len(l.proxy.Calls())
	l.log.Reset()
	l.runTask(l.t.Context(), c)
	// A finished pull has queried its progress, which may reach the proxy only now.
	late := func(method string) bool { return strings.HasSuffix(method, "ListStatuses") }
	return slices.DeleteFunc(l.proxy.Calls()[before:], late), l.log.String()
}

func (l *lab) grow(log string, size int64) {
	l.t.Helper()
	if err := os.Truncate(log, size); err != nil {
		l.t.Fatal(err)
	}
}

// TestLogsAreRotated checks that a full log is rotated and that the number of files is limited. Small logs, and logs
// without a writer, cost no call.
func TestLogsAreRotated(t *testing.T) {
	l := newLab(t, Settings{})
	ref, sandbox := l.pod("web", "i:1")
	_, ended := l.run(ref, sandbox, "i:1", 0)
	l.server.Exit("a", 1)
	_, log := l.run(ref, sandbox, "i:1", 1)
	l.grow(log, 999)
	if calls, lines := l.calls(logTask); len(calls) > 0 || lines != "" {
		t.Errorf("small logs: %v\n%s", calls, lines)
	}
	for range 4 {
		l.grow(log, 1000)
		if _, lines := l.calls(logTask); strings.Count(lines, "msg=rotated") != 1 || strings.Count(lines, "\n") != 1 {
			t.Errorf("a full log: %s", lines)
		}
		l.clock.Advance(10 * time.Second)
	}
	files, err := os.ReadDir(log[:strings.LastIndex(log, "/")])
	if err != nil || len(files) != 4 { // one of the other attempt, and three of this one
		t.Errorf("files %v %v", files, err)
	}
	l.grow(ended, 5000)
	if calls, lines := l.calls(logTask); len(calls) == 0 || lines != "" {
		t.Errorf("the log of a container that ended: %v\n%s", calls, lines)
	}
	if calls, _ := l.calls(logTask); len(calls) > 0 {
		t.Errorf("it is asked for again: %v", calls)
	}
	l.grow(log, 2000)
	if _, lines := l.calls(logTask); strings.Count(lines, "msg=rotated") != 1 {
		t.Errorf("a full log beside one that no container writes to: %s", lines)
	}
}

// TestKilledPullsAreSettled checks that the image of a killed pull is recorded once the runtime answers. Without such
// pulls, there is no call.
func TestKilledPullsAreSettled(t *testing.T) {
	l := newLab(t, Settings{})
	records := state.NewPullRecords(l.layout)
	if calls, lines := l.calls(pullTask); len(calls) > 0 || lines != "" {
		t.Errorf("without pulls: %v\n%s", calls, lines)
	}
	if err := errors.Join(records.Begin("i:1"), records.End("i:1", state.PullUnrecorded)); err != nil {
		t.Fatal(err)
	}
	info, _, err := images.Status(t.Context(), l.client.Images, "i:1")
	if err != nil {
		t.Fatal(err)
	}
	l.server.Fail(runtimetest.Fault{Method: "ImageStatus", Times: 1, Err: errors.New("injected failure")})
	if _, lines := l.calls(pullTask); !strings.Contains(lines, "injected failure") || records.Read("i@sha256:0", info.ID).Pulled {
		t.Errorf("while the runtime fails: %s", lines)
	}
	if _, lines := l.calls(pullTask); lines != "" || !records.Read("i@sha256:0", info.ID).Pulled {
		t.Errorf("the image looks preloaded: %s", lines)
	}
	if calls, lines := l.calls(pullTask); len(calls) > 0 || lines != "" {
		t.Errorf("afterwards: %v\n%s", calls, lines)
	}
}

// TestRecordsOfNewerPullsStay checks that the removal of an image keeps the record of its pulls, because another pod may
// have pulled it again meanwhile.
func TestRecordsOfNewerPullsStay(t *testing.T) {
	l := newLab(t, Settings{})
	records := state.NewPullRecords(l.layout)
	found, _, err := l.world.Images.List(t.Context())
	if err != nil || len(found) != 1 {
		t.Fatal(found, err)
	}
	err = records.Add("i:1", found[0].ID, imageaccess.Of(nil), time.Now())
	if err = errors.Join(err, l.world.Images.Remove(t.Context(), found[0])); err != nil {
		t.Fatal(err)
	}
	if calls, lines := l.calls(imageTask); len(calls) == 0 || lines != "" || !records.Read("i:1", found[0].ID).Pulled {
		t.Errorf("the record is gone: %v\n%s", calls, lines)
	}
}

// TestFilesOfContainersAreTrimmed checks that termination messages of kept pods are trimmed with the logs, so that they
// take little disk space.
func TestFilesOfContainersAreTrimmed(t *testing.T) {
	l := newLab(t, Settings{})
	ref, _ := l.pod("web", "i:1")
	path, err := l.layout.Pod(ref.UID).TerminationLogs("a").New()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, bytes.Repeat([]byte("x"), 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	if calls, lines := l.calls(logTask); len(calls) > 0 || lines != "" {
		t.Errorf("%v %s", calls, lines)
	}
	if size := statedir.Size(path); size > 16<<10 {
		t.Errorf("the message takes %d bytes", size)
	}
}

// TestLogsOfPodsThatAreNotKept checks that such logs are not touched.
func TestLogsOfPodsThatAreNotKept(t *testing.T) {
	l := newLab(t, Settings{})
	ref, sandbox := l.pod("web", "i:1")
	_, log := l.run(ref, sandbox, "i:1", 0)
	l.grow(log, 5000)
	l.kept = nil
	if calls, lines := l.calls(logTask); len(calls) > 0 || lines != "" {
		t.Errorf("%v\n%s", calls, lines)
	}
}

// TestLockedPods checks that the logs of a locked pod are rotated, because a pass can take long. Its records are left
// without a log line until the next run.
func TestLockedPods(t *testing.T) {
	l := newLab(t, Settings{MaxRecords: -1})
	ref, sandbox := l.pod("web", "i:1")
	for attempt := range uint32(2) {
		l.run(ref, sandbox, "i:1", attempt)
		l.server.Exit("a", 1)
	}
	_, log := l.run(ref, sandbox, "i:1", 2)
	l.grow(log, 1000)
	lock, err := l.layout.Pod(ref.UID).Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, lines := l.calls(recordTask); lines != "" {
		t.Errorf("records: %s", lines)
	}
	if _, lines := l.calls(logTask); strings.Count(lines, "\n") != 1 {
		t.Errorf("logs: %s", lines)
	}
	if err := lock.Unlock(); err != nil {
		t.Fatal(err)
	}
	if _, lines := l.calls(recordTask); strings.Count(lines, "\n") != 1 {
		t.Errorf("records once the lock is free: %s", lines)
	}
}

// TestRecordsAreRemoved checks that one record of each container stays. If nothing has to be removed, there is one list
// call and no log line.
func TestRecordsAreRemoved(t *testing.T) {
	l := newLab(t, Settings{MaxRecords: -1})
	ref, sandbox := l.pod("web", "i:1")
	for attempt := range uint32(3) {
		l.run(ref, sandbox, "i:1", attempt)
		l.server.Exit("a", 1)
	}
	if _, lines := l.calls(recordTask); strings.Count(lines, "msg=removed") != 2 {
		t.Errorf("%s", lines)
	}
	calls, lines := l.calls(recordTask)
	if want := []string{"ListPodSandbox", "ListContainers"}; lines != "" || !slices.Equal(shortNames(calls), want) {
		t.Errorf("with nothing to do: %v\n%s", calls, lines)
	}
}

func shortNames(calls []string) []string {
	all := make([]string, 0, len(calls))
	for _, c := range calls {
		name, _, _ := strings.Cut(c[strings.LastIndex(c, "/")+1:], " ")
		all = append(all, name)
	}
	return all
}

// TestFailuresAreLoggedOnce checks that a failure is logged once, and again after it was gone.
func TestFailuresAreLoggedOnce(t *testing.T) {
	l := newLab(t, Settings{MaxRecords: -1})
	fail := func(times int) {
		l.server.Fail(runtimetest.Fault{Method: "ListPodSandbox", Times: times, Err: errors.New("no")})
	}
	fail(3)
	for i, want := range []int{1, 0, 0, 0, 1, 0} {
		if i == 4 {
			fail(2)
		}
		if _, lines := l.calls(recordTask); strings.Count(lines, "\n") != want {
			t.Errorf("run %d: %q", i, lines)
		}
	}
}

// TestJoinedFailures checks that joined failures are logged one by one, each as a whole.
func TestJoinedFailures(t *testing.T) {
	l := newLab(t, Settings{})
	damaged := fmt.Errorf("%w: %w", errors.New("damaged"), errors.New("no version"))
	for _, err := range []error{errors.Join(errors.New("busy"), damaged), damaged, errors.Join(damaged, damaged)} {
		l.logFailures(recordTask, err)
	}
	if lines := l.log.String(); strings.Count(lines, "\n") != 2 || !strings.Contains(lines, `error="damaged: no version"`) {
		t.Error(lines)
	}
}

func (l *lab) pull(name string) {
	l.t.Helper()
	if _, err := l.world.Images.Pull(l.t.Context(), images.Request{Image: name}, func(images.PullProgress) {}); err != nil {
		l.t.Fatal(err)
	}
}

func (l *lab) present() string {
	l.t.Helper()
	found, _, err := l.world.Images.List(l.t.Context())
	if err != nil {
		l.t.Fatal(err)
	}
	var names []string
	for _, img := range found {
		names = append(names, img.Name())
	}
	return strings.Join(names, " ")
}

// TestImagesAreRemoved checks that a full disk leads to the removal of images that podctl pulled and no pod needs, and
// of no others. If the disk is not full, the images of containers are not queried one by one.
func TestImagesAreRemoved(t *testing.T) {
	l := newLab(t, Settings{})
	ref, sandbox := l.pod("web", "named.local/n:1")
	for _, name := range []string{"a.local/a:1", "named.local/n:1", "used.local/u:1"} {
		l.pull(name)
	}
	l.run(ref, sandbox, "used.local/u:1", 0)
	l.pull("i:1") // The image was present before.
	calls, lines := l.calls(imageTask)
	// The first run ignores the disk usage.
	if names := shortNames(calls); lines != "" || slices.Contains(names, "ContainerStatus") || len(names) != 3 {
		t.Errorf("with room on the disk: %v\n%s", calls, lines)
	}
	l.clock.Advance(5 * time.Minute)
	l.pull("new.local/n:1")
	l.disk.Available = 10
	if _, lines := l.calls(imageTask); !strings.Contains(lines, "a.local/a:1") ||
		!strings.Contains(lines, "99% of the image disk is used") {
		t.Errorf("on a full disk:\n%s", lines)
	}
	if got, want := l.present(), "i:1 named.local/n:1 new.local/n:1 used.local/u:1"; got != want {
		t.Errorf("left are %s, want %s", got, want)
	}
	if notes, err := l.world.Images.Notes(); err != nil || notes.Has("sha256:a.local/a:1") || notes.Has("sha256:i:1") ||
		!notes.Has("sha256:used.local/u:1") {
		t.Errorf("noted are %v %v", notes, err)
	}
}

// TestImagesAfterARestart checks a new agent, which does not know when images were last used. It removes none in its
// first run and none before two minutes, however full the disk is (kubelet, test/e2e_node/image_gc_test.go: "should not
// GC unused images prematurely", "should GC unused images").
func TestImagesAfterARestart(t *testing.T) {
	l := newLab(t, Settings{})
	l.pull("a.local/a:1")
	l.calls(imageTask)
	l.clock.Advance(imagesEach)
	l.disk.Available = 10
	l.Housekeeper = New(l.world, l.settings)
	for _, c := range []struct {
		later   time.Duration
		present string
	}{{0, "a.local/a:1 i:1"}, {minAge - 1, "a.local/a:1 i:1"}, {1, "i:1"}} {
		l.clock.Advance(c.later)
		if _, lines := l.calls(imageTask); l.present() != c.present {
			t.Errorf("%s later: left are %s, want %s\n%s", c.later, l.present(), c.present, lines)
		}
	}
}

// TestOldImages checks that images that no pod has used for the maximum age are removed while the disk is not full, and
// that the time begins when the agent first sees an image.
func TestOldImages(t *testing.T) {
	l := newLab(t, Settings{Images: Thresholds{MaxAge: time.Hour}})
	l.pull("a.local/a:1")
	l.calls(imageTask)
	l.clock.Advance(time.Hour)
	l.pull("b.local/b:1")
	for _, c := range []struct {
		later   time.Duration
		present string
	}{{0, "a.local/a:1 b.local/b:1 i:1"}, {1, "b.local/b:1 i:1"}, {time.Hour - 1, "b.local/b:1 i:1"}, {1, "i:1"}} {
		l.clock.Advance(c.later)
		if _, lines := l.calls(imageTask); l.present() != c.present ||
			c.later == 1 && !strings.Contains(lines, "no pod has used the image for 1h0m0s") {
			t.Errorf("%s later: left are %s, want %s\n%s", c.later, l.present(), c.present, lines)
		}
	}
}

// TestImagesThatOthersPulled checks that images that others pulled again are not removed.
func TestImagesThatOthersPulled(t *testing.T) {
	l := newLab(t, Settings{})
	l.pull("a.local/a:1")
	spec := &runtimeapi.ImageSpec{Image: "a.local/a:1"}
	if _, err := l.client.Images.RemoveImage(t.Context(), &runtimeapi.RemoveImageRequest{Image: spec}); err != nil {
		t.Fatal(err)
	}
	l.calls(imageTask)
	if _, err := l.client.Images.PullImage(t.Context(), &runtimeapi.PullImageRequest{Image: spec}); err != nil {
		t.Fatal(err)
	}
	l.calls(imageTask)
	l.clock.Advance(5 * time.Minute)
	l.disk.Available = 10
	if _, lines := l.calls(imageTask); !strings.Contains(lines, "does not free enough") || l.present() != "a.local/a:1 i:1" {
		t.Errorf("left are %s\n%s", l.present(), lines)
	}
}

// TestImagesStayWhileTheirUsersAreUnknown checks that no image is removed while a checkpoint is unreadable, because
// it may name any image.
func TestImagesStayWhileTheirUsersAreUnknown(t *testing.T) {
	l := newLab(t, Settings{})
	l.pod("web", "i:1")
	l.pod("db", "i:1")
	l.pull("a.local/a:1")
	l.calls(imageTask)
	l.clock.Advance(5 * time.Minute)
	l.disk.Available = 10
	for _, ref := range l.kept {
		if err := os.WriteFile(l.layout.Pod(ref.UID).Checkpoint().Path(), []byte("{"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, lines := l.calls(imageTask); !strings.Contains(lines, "no image is removed") || strings.Count(lines, "\n") != 1 ||
		l.present() != "a.local/a:1 i:1" {
		t.Errorf("left are %s\n%s", l.present(), lines)
	}
}

// TestRunEndsWithItsContext checks that Run first looks only for killed pulls, and ends with its context.
func TestRunEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		store := images.NewStore(nil, state.Layout{Root: t.TempDir()})
		h := New(World{Images: store}, Settings{Now: time.Now, Log: slog.New(slog.DiscardHandler)})
		go func() {
			defer close(done)
			h.Run(ctx, nil)
		}()
		time.Sleep(logsEach - time.Second)
		cancel()
		<-done
	})
}
