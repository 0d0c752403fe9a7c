package state

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/podctl/podctl/runtime/state/podlogs"
)

// writeLogs writes logs of two attempts of a container, the first one rotated, and a link to the second.
func writeLogs(t *testing.T, pod Pod, namespace, name string) {
	t.Helper()
	write(t, ok(pod.Logs(namespace, name).File("app", 0))+".20260301-120000", "oldest")
	write(t, ok(pod.Logs(namespace, name).File("app", 0)), "old")
	write(t, ok(pod.Logs(namespace, name).File("app", 1)), "new")
	if err := pod.Logs(namespace, name).Link("app", "id-"+name, 1); err != nil {
		t.Fatal(err)
	}
}

func TestRemoveOlderLogs(t *testing.T) {
	pod := newLayout(t).Pod(testUID)
	writeLogs(t, pod, "default", "web")
	write(t, ok(pod.Logs("default", "web").File("app", 10)), "the newest")
	if err := pod.Logs("default", "web").Link("app", "id-newest", 10); err != nil {
		t.Fatal(err)
	}
	if err := pod.Logs("default", "web").RemoveOlder("app", 10); err != nil {
		t.Fatal(err)
	}
	if left := names(t, ok(pod.Logs("default", "web").ContainerDir("app"))); !slices.Equal(left, []string{"10.log"}) {
		t.Errorf("left are %v, want the log of attempt 10", left)
	}
	if left := names(t, pod.layout.ContainerLogRoot); !slices.Equal(left, []string{"web_default_app-id-newest.log"}) {
		t.Errorf("the links %v are left", left)
	}
}

func TestRemoveLogsRemovesOneAttempt(t *testing.T) {
	pod := newLayout(t).Pod(testUID)
	writeLogs(t, pod, "default", "web")
	write(t, ok(pod.Logs("default", "web").File("app", 10)), "another attempt that begins with the same digit")
	for range 2 {
		if err := pod.Logs("default", "web").Remove("app", "id-web", 1); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{"0.log", "0.log.20260301-120000", "10.log"}
	if diff := cmp.Diff(want, names(t, ok(pod.Logs("default", "web").ContainerDir("app")))); diff != "" {
		t.Errorf("logs differ (-want +got):\n%s", diff)
	}
	wantGone(t, ok(pod.Logs("default", "web").LinkPath("app", "id-web")))
	if err := pod.Logs("default", "web").Remove("app", "id-web", 0); err != nil {
		t.Fatal(err)
	}
	if left := names(t, ok(pod.Logs("default", "web").ContainerDir("app"))); len(left) != 1 {
		t.Errorf("left are %v, want the log of attempt 10", left)
	}
}

func TestArchivedLogsAreReadable(t *testing.T) {
	l := newLayout(t)
	pod, other := l.Pod(testUID), l.Pod("other")
	writeLogs(t, pod, "default", "web")
	writeLogs(t, other, "default", "web2")
	if err := pod.Logs("default", "web").Archive(testTime()); err != nil {
		t.Fatal(err)
	}
	wantGone(t, ok(pod.Logs("default", "web").Dir()))
	if _, found := pod.Logs("default", "web").Last("app"); found {
		t.Error("the next pod of the name does not start at zero")
	}
	aside := filepath.Join(l.DeletedLogs().Dir(), "default_web_"+testUID+".20260301-123015.123456")
	if text, err := os.ReadFile(filepath.Join(aside, "app", "1.log")); err != nil || string(text) != "new" {
		t.Errorf("set aside is %q (%v)", text, err)
	}
	wantMode(t, l.DeletedLogs().Dir(), os.ModeDir|0o750)
	wantGone(t, ok(pod.Logs("default", "web").LinkPath("app", "id-web")))
	if _, err := os.Stat(ok(other.Logs("default", "web2").LinkPath("app", "id-web2"))); err != nil {
		t.Errorf("the link of another pod: %v", err)
	}
}

func TestArchivedLogsAreHiddenFromShippers(t *testing.T) {
	l := newLayout(t)
	pod := l.Pod(testUID)
	writeLogs(t, pod, "default", "web")
	if err := pod.Logs("default", "web").Archive(testTime()); err != nil {
		t.Fatal(err)
	}
	found, err := filepath.Glob(filepath.Join(l.LogRoot, "*", "*", "*.log"))
	if err != nil || len(found) != 0 {
		t.Errorf("the usual pattern finds %v (%v)", found, err)
	}
}

func TestOnlyNewestArchivedLogsAreKept(t *testing.T) {
	l := newLayout(t)
	pod, other := l.Pod(testUID), l.Pod(testUID+"0")
	writeLogs(t, other, "default", "web")
	if err := other.Logs("default", "web").Archive(testTime()); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		writeLogs(t, pod, "default", "web")
		if err := pod.Logs("default", "web").Archive(testTime().Add(time.Duration(i) * time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{
		"default_web_" + testUID + ".20260301-143015.123456",
		"default_web_" + testUID + "0.20260301-123015.123456",
	}
	if diff := cmp.Diff(want, names(t, l.DeletedLogs().Dir())); diff != "" {
		t.Errorf("set aside differ (-want +got):\n%s", diff)
	}
}

func TestArchiveTwiceAtTheSameTime(t *testing.T) {
	l := newLayout(t)
	pod := l.Pod(testUID)
	for range 2 {
		writeLogs(t, pod, "default", "web")
		if err := pod.Logs("default", "web").Archive(testTime()); err != nil {
			t.Fatal(err)
		}
	}
	if left := names(t, l.DeletedLogs().Dir()); len(left) != 1 {
		t.Errorf("set aside are %v, want one", left)
	}
}

func TestArchiveNothing(t *testing.T) {
	l := newLayout(t)
	if err := l.Pod(testUID).Logs("default", "web").Archive(testTime()); err != nil {
		t.Error(err)
	}
	wantGone(t, l.LogRoot)
}

func TestTerminationLogIsNewForEachStart(t *testing.T) {
	withUmask(t, 0o077)
	pod := newLayout(t).Pod(testUID)
	seen := map[string]bool{}
	for range 5 {
		path, err := pod.TerminationLogs("app").New()
		if err != nil {
			t.Fatal(err)
		}
		if base := filepath.Base(path); len(base) != 8 || filepath.Dir(path) != ok(pod.TerminationLogs("app").Dir()) || seen[path] {
			t.Errorf("termination log %s, want eight new digits in %s", path, ok(pod.TerminationLogs("app").Dir()))
		}
		seen[path] = true
		wantMode(t, path, 0o666)
	}
}

// TestLogsOfAKubeletGoWithThePod checks names with the node's name, which a kubelet adds to a static pod.
func TestLogsOfAKubeletGoWithThePod(t *testing.T) {
	for name, remove := range map[string]func(podlogs.Logs) error{
		"deleted":   func(l podlogs.Logs) error { return l.Archive(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)) },
		"left over": podlogs.Logs.RemoveAll,
	} {
		t.Run(name, func(t *testing.T) {
			layout := newLayout(t)
			pod := layout.Pod(testUID)
			for _, name := range []string{"web", "web-node-1", "web-node-2", "website", "web-"} {
				writeLogs(t, pod, "default", name)
			}
			writeLogs(t, layout.Pod("another-uid"), "default", "web-node-1")
			if err := remove(pod.Logs("default", "web")); err != nil {
				t.Fatal(err)
			}
			var left []string
			for _, name := range names(t, layout.LogRoot) {
				if name != ".deleted" {
					left = append(left, name)
				}
			}
			want := []string{"default_web-_" + testUID, "default_web-node-1_another-uid", "default_website_" + testUID}
			if diff := cmp.Diff(want, left); diff != "" {
				t.Errorf("logs that are left (-want +got):\n%s", diff)
			}
			wantLinks := []string{
				"web-_default_app-id-web-.log",
				"web-node-1_default_app-id-web-node-1.log",
				"website_default_app-id-website.log",
			}
			if diff := cmp.Diff(wantLinks, names(t, layout.ContainerLogRoot)); diff != "" {
				t.Errorf("links that are left (-want +got):\n%s", diff)
			}
			deleted, err := layout.DeletedLogs().List()
			if err != nil || (name == "deleted") != (len(deleted) == 3) {
				t.Errorf("%d logs of deleted pods, %v", len(deleted), err)
			}
		})
	}
}
