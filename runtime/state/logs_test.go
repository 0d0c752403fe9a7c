package state

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestLastLogAttempt(t *testing.T) {
	tests := map[string]struct {
		files []string
		want  uint32
		found bool
	}{
		"no directory":                    {nil, 0, false},
		"one log":                         {[]string{"0.log"}, 0, true},
		"numbers are not words":           {[]string{"9.log", "10.log"}, 10, true},
		"rotated logs count":              {[]string{"1.log", "4.log.20260301-123015", "2.log.20260301-123015.gz"}, 4, true},
		"other files do not":              {[]string{"0.log", "7.logs", "8.txt", "x.log", "-3.log", ".log", "5.log2"}, 0, true},
		"a number beyond any attempt":     {[]string{"1.log", "99999999999.log"}, 1, true},
		"nothing but other files":         {[]string{"notes"}, 0, false},
		"a directory that is called such": {[]string{"1.log", "6.log/inside"}, 1, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			pod := newLayout(t).Pod(testUID)
			for _, file := range test.files {
				write(t, filepath.Join(ok(pod.Logs("default", "web").ContainerDir("app")), file), "")
			}
			got, found := pod.Logs("default", "web").Last("app")
			if got != test.want || found != test.found {
				t.Errorf("LastLogAttempt = %d, %v; want %d, %v", got, found, test.want, test.found)
			}
		})
	}
}

func TestMakeLogDirGivesExactModes(t *testing.T) {
	withUmask(t, 0o077)
	l := newLayout(t)
	pod := l.Pod(testUID)
	if err := pod.Logs("default", "web").Make(""); err != nil {
		t.Fatal(err)
	}
	if entries := names(t, ok(pod.Logs("default", "web").Dir())); len(entries) != 0 {
		t.Errorf("the pod's log directory holds %v, want nothing", entries)
	}
	if err := pod.Logs("default", "web").Make("app"); err != nil {
		t.Fatal(err)
	}
	wantMode(t, l.LogRoot, os.ModeDir|0o750)
	wantMode(t, ok(pod.Logs("default", "web").Dir()), os.ModeDir|0o755)
	wantMode(t, ok(pod.Logs("default", "web").ContainerDir("app")), os.ModeDir|0o755)
}

func TestLogLinkIsTheKubelets(t *testing.T) {
	pod := newLayout(t).Pod(testUID)
	write(t, ok(pod.Logs("default", "web").File("app", 2)), "hello\n")
	if err := pod.Logs("default", "web").Link("app", "abc123", 2); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(pod.layout.ContainerLogRoot, "web_default_app-abc123.log")
	if got := ok(pod.Logs("default", "web").LinkPath("app", "abc123")); got != link {
		t.Errorf("logLink = %s, want %s", got, link)
	}
	if text, err := os.ReadFile(link); err != nil || string(text) != "hello\n" {
		t.Errorf("the target of the link has %q (%v)", text, err)
	}
	wantMode(t, pod.layout.ContainerLogRoot, os.ModeDir|0o755)
}

func TestLogLinkIsCutAsTheKubeletCutsIt(t *testing.T) {
	pod := newLayout(t).Pod(testUID)
	container := strings.Repeat("c", 63)
	name, id := strings.Repeat("n", 200), strings.Repeat("f", 64)
	base := filepath.Base(ok(pod.Logs("default", name).LinkPath(container, id)))
	if len(base) != 255 || base != (name + "_default_" + container + "-" + id)[:251]+".log" {
		t.Errorf("link %s has %d characters, want the first 251 and .log", base, len(base))
	}
}

func TestLogLinkReplacesAnOlderOne(t *testing.T) {
	pod := newLayout(t).Pod(testUID)
	for attempt := range uint32(2) {
		write(t, ok(pod.Logs("default", "web").File("app", attempt)), "")
		for range 2 {
			if err := pod.Logs("default", "web").Link("app", "abc", attempt); err != nil {
				t.Fatal(err)
			}
		}
		target, err := os.Readlink(ok(pod.Logs("default", "web").LinkPath("app", "abc")))
		if err != nil || target != ok(pod.Logs("default", "web").File("app", attempt)) {
			t.Errorf("the link leads to %s (%v)", target, err)
		}
	}
}

func TestNoLogNoLink(t *testing.T) {
	pod := newLayout(t).Pod(testUID)
	if err := pod.Logs("default", "web").Link("app", "abc", 0); err != nil {
		t.Fatal(err)
	}
	wantGone(t, pod.layout.ContainerLogRoot)
	pod.layout.ContainerLogRoot = ""
	write(t, ok(pod.Logs("default", "web").File("app", 0)), "")
	if err := pod.Logs("default", "web").Link("app", "abc", 0); err != nil {
		t.Errorf("without a directory for links: %v", err)
	}
}
