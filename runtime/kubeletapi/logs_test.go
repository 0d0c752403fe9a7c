package kubeletapi

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/cri"
)

// line returns a line of a log as a runtime writes it.
func line(second int, stream, text string) string {
	return fmt.Sprintf("2026-05-04T12:00:%02d.000000000Z %s F %s\n", second, stream, text)
}

// logFile creates the log of a container. Names other than 0.log are rotated files.
func logFile(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "ns_web_u1", "app")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "0.log")
}

// logServer is a server of a pod with a log of four lines in two files.
type logServer struct {
	*served
	runtime *fakeRuntime
	agent   *pods
	// path is the current file of the log.
	path string
}

func serveLog(t *testing.T, change ...func(*Settings, *limits)) *logServer {
	t.Helper()
	agent, m, d := web(t)
	path := logFile(t, map[string]string{
		"0.log.20260504-120001": line(0, "stdout", "one") + line(1, "stderr", "two"),
		"0.log":                 line(2, "stdout", "three") + line(3, "stderr", "four"),
	})
	m.run(d, "app", "c1", path)
	return &logServer{serve(t, agent, m, change...), m, agent, path}
}

// TestLogs checks the parameters of a request for logs, with the kubelet's errors.
func TestLogs(t *testing.T) {
	s := serveLog(t, func(s *Settings, _ *limits) {
		s.Now = func() time.Time { return time.Date(2026, 5, 4, 12, 0, 10, 0, time.UTC) }
	})
	const path = "/containerLogs/ns/web/app"
	for query, want := range map[string]string{
		"":                                     "one\ntwo\nthree\nfour\n",
		"?tailLines=3":                         "two\nthree\nfour\n",
		"?tail=1":                              "four\n",
		"?tail=all&tailLines=1":                "one\ntwo\nthree\nfour\n",
		"?tailLines=0":                         "",
		"?sinceSeconds=8":                      "three\nfour\n",
		"?sinceTime=2026-05-04T12:00:01Z":      "two\nthree\nfour\n",
		"?sinceSeconds=9223372036854775807":    "one\ntwo\nthree\nfour\n",
		"?limitBytes=6":                        "one\ntw",
		"?stream=Stderr":                       "two\nfour\n",
		"?stream=Stdout&limitBytes=5":          "one\nt",
		"?stream=All&tailLines=1":              "four\n",
		"?timestamps=true&tailLines=1":         "2026-05-04T12:00:03.000000000Z four\n",
		"?follow=false&tailLines=1&previous=0": "four\n",
		"?tailLines=9223372036854775807":       "one\ntwo\nthree\nfour\n",
	} {
		s.expect("GET", path+query, http.StatusOK, want)
	}
	const undecodable, invalid = `{"message": "Unable to decode query."}`, `{"message": "Invalid request."}`
	for query, want := range map[string]string{
		"?tailLines=x": undecodable, "?sinceSeconds=1.5": undecodable, "?sinceTime=yesterday": undecodable,
		"?limitBytes=99999999999999999999": undecodable,
		"?tailLines=-1":                    invalid, "?limitBytes=0": invalid, "?sinceSeconds=0": invalid,
		"?sinceSeconds=1&sinceTime=2026-05-04T12:00:01Z": invalid, "?stream=stdin": invalid, "?stream=Stdout&tailLines=1": invalid,
	} {
		code := http.StatusBadRequest
		if want == invalid {
			code = http.StatusUnprocessableEntity
		}
		s.expect("GET", path+query, code, want)
	}
	s.expect("GET", "/containerLogs/ns/other/app", http.StatusNotFound, `pod "other" does not exist`)
	s.expect("GET", "/containerLogs/other/web/app", http.StatusNotFound, `pod "web" does not exist`)
	s.expect("GET", "/containerLogs/ns/web/other", http.StatusNotFound, `container "other" not found in pod "web"`)
	s.expect("GET", path+"?previous=true", http.StatusBadRequest, `previous terminated container "app" in pod "web" not found`)
	if code, text := s.do("GET", path, "body"); code != http.StatusRequestEntityTooLarge {
		t.Errorf("a body: %d %q", code, text)
	}
}

// TestLoggedRun checks which run's log is shown, and why there is none (kubelet: TestValidateContainerLogStatus).
func TestLoggedRun(t *testing.T) {
	runs := v1.ContainerState{Running: &v1.ContainerStateRunning{}}
	waits := func(reason string) v1.ContainerState {
		return v1.ContainerState{Waiting: &v1.ContainerStateWaiting{Reason: reason}}
	}
	ended := func(id string) v1.ContainerState {
		return v1.ContainerState{Terminated: &v1.ContainerStateTerminated{ContainerID: id}}
	}
	const (
		terminated = `container "app" in pod "web" is terminated`
		noPrevious = `previous terminated container "app" in pod "web" not found`
		starting   = `container "app" in pod "web" is waiting to start: `
	)
	for name, c := range map[string]struct {
		now, last v1.ContainerState
		previous  bool
		want      string
	}{
		"running":                      {now: runs, want: "r://now"},
		"running, it ran before":       {now: runs, last: ended("r://last"), want: "r://now"},
		"the run before":               {now: runs, last: ended("r://last"), previous: true, want: "r://last"},
		"no run before":                {now: runs, previous: true, want: noPrevious},
		"the run before without an id": {now: runs, last: ended(""), previous: true, want: noPrevious},
		"ended":                        {now: ended("r://end"), last: ended("r://last"), want: "r://end"},
		"ended without an id":          {now: ended(""), last: ended("r://last"), want: "r://last"},
		"ended, never started":         {now: ended(""), want: terminated},
		"waits for a restart":          {now: waits("CrashLoopBackOff"), last: ended("r://last"), want: "r://last"},
		"waits, last without an id":    {now: waits("CrashLoopBackOff"), last: ended(""), want: terminated},
		"cannot pull":                  {now: waits("ErrImagePull"), want: starting + "image can't be pulled"},
		"cannot pull for some time":    {now: waits("ImagePullBackOff"), want: starting + "trying and failing to pull image"},
		"waits":                        {now: waits("ContainerCreating"), want: starting + "ContainerCreating"},
		"unknown":                      {want: `container "app" in pod "web" is waiting to start - no logs yet`},
	} {
		one := []v1.ContainerStatus{{Name: "app", ContainerID: "r://now", State: c.now, LastTerminationState: c.last}}
		for kind, all := range map[string]v1.PodStatus{
			"regular": {ContainerStatuses: one}, "init": {InitContainerStatuses: one}, "ephemeral": {EphemeralContainerStatuses: one},
		} {
			got, err := loggedRun(&all, "web", "app", c.previous)
			if err != nil {
				got = err.Error()
			}
			if got != c.want {
				t.Errorf("%s, %s: %s, not %s", name, kind, got, c.want)
			}
		}
	}
	_, err := loggedRun(&v1.PodStatus{}, "web", "app", false)
	if err == nil || err.Error() != `container "app" in pod "web" is not available` {
		t.Errorf("without a status: %v", err)
	}
}

// TestLogsWithoutRecord checks the error for a container that the runtime has removed. It is part of the text.
func TestLogsWithoutRecord(t *testing.T) {
	s := serveLog(t)
	s.agent.status["u1"] = running("app", "gone")
	s.expect("GET", "/containerLogs/ns/web/app", http.StatusOK, "unable to retrieve container logs for containerd://gone")
}

// TestDebugContainerLogs checks the log of a container that was added to a running pod.
func TestDebugContainerLogs(t *testing.T) {
	s := serveLog(t)
	s.agent.added = []v1.EphemeralContainer{{EphemeralContainerCommon: v1.EphemeralContainerCommon{Name: "debug"}}}
	s.agent.status["u1"] = v1.PodStatus{EphemeralContainerStatuses: []v1.ContainerStatus{{
		Name: "debug", State: v1.ContainerState{Terminated: &v1.ContainerStateTerminated{ContainerID: "containerd://c1"}},
	}}}
	s.expect("GET", "/containerLogs/ns/web/debug?tailLines=1", http.StatusOK, "four\n")
}

// following opens the log of a container and returns its lines.
func following(ctx context.Context, t *testing.T, s *logServer, query string) *bufio.Scanner {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, "GET", s.url+"/containerLogs/ns/web/app?follow=true"+query, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := s.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = response.Body.Close() })
	return bufio.NewScanner(response.Body)
}

func expectLines(t *testing.T, lines *bufio.Scanner, want ...string) {
	t.Helper()
	for _, text := range want {
		if !lines.Scan() || lines.Text() != text {
			t.Fatalf("%q (%v), not %q", lines.Text(), lines.Err(), text)
		}
	}
}

func appendTo(t *testing.T, path, text string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() //nolint:errcheck // the write was checked
	if _, err = f.WriteString(text); err != nil {
		t.Fatal(err)
	}
}

// TestFollow checks that lines arrive at once, also after a rotation, and that the response ends with the container.
func TestFollow(t *testing.T) {
	s := serveLog(t)
	lines := following(t.Context(), t, s, "&tailLines=1")
	expectLines(t, lines, "four")
	appendTo(t, s.path, line(4, "stdout", "five"))
	expectLines(t, lines, "five")
	if err := os.Rename(s.path, s.path+".20260504-120004"); err != nil {
		t.Fatal(err)
	}
	appendTo(t, s.path, line(5, "stdout", "six"))
	expectLines(t, lines, "six")
	s.runtime.fail(&cri.UnavailableError{Err: status.Error(codes.Unavailable, "it restarts")})
	appendTo(t, s.path, line(6, "stdout", "seven"))
	expectLines(t, lines, "seven")
	s.runtime.fail(nil)
	s.runtime.exit("c1")
	appendTo(t, s.path, line(7, "stdout", "eight"))
	expectLines(t, lines, "eight")
	if lines.Scan() || lines.Err() != nil {
		t.Errorf("after the end: %q %v", lines.Text(), lines.Err())
	}
}

// TestFollowEndsWithClient checks that a client that goes away ends the reader of the log, and that the number of
// streams is limited.
func TestFollowEndsWithClient(t *testing.T) {
	s := serveLog(t, func(_ *Settings, l *limits) { l.streams = 1 })
	ctx, leave := context.WithCancel(t.Context())
	expectLines(t, following(ctx, t, s, ""), "one", "two", "three", "four")
	code, text := s.do("GET", "/containerLogs/ns/web/app", "")
	if code != http.StatusTooManyRequests || text != "maximum number of in-flight requests exceeded" {
		t.Errorf("one stream more: %d %q", code, text)
	}
	s.expect("GET", "/healthz", http.StatusOK, "ok")
	leave()
	if err := s.streams.total.Acquire(t.Context(), 1); err != nil { // It waits for the end of the reader.
		t.Error(err)
	}
	s.streams.total.Release(1)
	s.expect("GET", "/containerLogs/ns/web/app?tailLines=1", http.StatusOK, "four\n")
}

// TestSlowReader checks that a client that does not read its log delays no other one.
func TestSlowReader(t *testing.T) {
	s := serveLog(t)
	appendTo(t, s.path, strings.Repeat(line(4, "stdout", strings.Repeat("x", 1000)), 20000))
	slow := following(t.Context(), t, s, "")
	expectLines(t, slow, "one")
	for len(s.runtime.checked) > 0 {
		<-s.runtime.checked
	}
	for range 3 {
		s.expect("GET", "/containerLogs/ns/web/app?limitBytes=4", http.StatusOK, "one\n")
	}
	if free := int64(s.limits.streams) - 1; !s.streams.total.TryAcquire(free) || s.streams.total.TryAcquire(1) {
		t.Error("not one stream is in work")
	}
}

// TestStaticNames checks that a pod of a file is found by its name and by its name in the API.
func TestStaticNames(t *testing.T) {
	d := pod("ns", "web", "u1", "files", v1.Container{Name: "app"})
	m := newRuntime(t)
	m.run(d, "app", "c1", logFile(t, map[string]string{"0.log": line(0, "stdout", "hello")}))
	s := serve(t, &pods{shown: []*podspec.Desired{d}, status: map[types.UID]v1.PodStatus{"u1": running("app", "c1")}}, m)
	s.expect("GET", "/containerLogs/ns/web/app", http.StatusOK, "hello\n")
	s.expect("GET", "/containerLogs/ns/web-node/app", http.StatusOK, "hello\n")
	s.expect("GET", "/containerLogs/ns/web-other/app", http.StatusNotFound, `pod "web-other" does not exist`)
}

// TestForeignRun checks that a status that names a container of another pod does not give access to its log.
func TestForeignRun(t *testing.T) {
	d, other := pod("ns", "web", "u1", "", v1.Container{Name: "app"}), pod("ns", "other", "u2", "", v1.Container{Name: "app"})
	m := newRuntime(t)
	m.run(other, "app", "c2", logFile(t, map[string]string{"0.log": line(0, "stdout", "hello")}))
	s := serve(t, &pods{shown: []*podspec.Desired{d}, status: map[types.UID]v1.PodStatus{"u1": running("app", "c2")}}, m)
	s.expect("GET", "/containerLogs/ns/web/app", http.StatusOK, "unable to retrieve container logs for containerd://c2")
}

// FuzzLogQuery checks that no query makes the decoder panic, and that a decoded one is valid.
func FuzzLogQuery(f *testing.F) {
	f.Add("follow=true&tailLines=3&sinceTime=2026-05-04T12:00:01Z&limitBytes=4&stream=All")
	f.Fuzz(func(t *testing.T, text string) {
		query, err := url.ParseQuery(text)
		if err != nil {
			return
		}
		options, err := logOptions(query)
		if err == nil && (options.TailLines != nil && *options.TailLines < 0 || options.LimitBytes != nil && *options.LimitBytes < 1) {
			t.Errorf("%q is accepted", text)
		}
	})
}
