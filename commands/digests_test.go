package commands

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"

	"github.com/podctl/podctl/commands/exit"
	"github.com/podctl/podctl/podspec/podspectest"
)

// pin writes the manifest with the given value as its Secret.
func (l *lab) pin(value string) string {
	l.T().Helper()
	l.T().Cleanup(func() {
		// The volume is in memory. The context of the test has already ended here.
		if err := l.unmount(); err != nil {
			l.T().Error(err)
		}
	})
	path := l.Path("web.yaml")
	if err := os.WriteFile(path, []byte(strings.Replace(podspectest.Pinned, "271828", value, 1)), 0o600); err != nil {
		l.T().Fatal(err)
	}
	return path
}

func (l *lab) unmount() error {
	mounts, err := mountinfo.GetMounts(mountinfo.PrefixFilter(l.Path("")))
	for _, m := range mounts {
		err = errors.Join(err, unix.Unmount(m.Mountpoint, unix.MNT_DETACH))
	}
	return err
}

func (l *lab) writeKey(key string) {
	l.T().Helper()
	if err := errors.Join(os.MkdirAll(l.Path("state"), 0o700), os.WriteFile(l.Path("state/digest.key"), []byte(key), 0o600)); err != nil {
		l.T().Fatal(err)
	}
}

const (
	oneKey     = "0123456789abcdef0123456789abcdef"
	anotherKey = "another key, of another machine."
)

// allOutput returns everything that podctl prints and writes about the pod, including container annotations.
func allOutput(t *testing.T, value, key string) string {
	t.Helper()
	l := newLab(t)
	l.writeKey(key)
	manifest := l.pin(value)
	var all strings.Builder
	for _, args := range [][]string{
		{"plan", "--save", l.Path("before.plan"), manifest},
		{"apply", "-o", "json", manifest},
		{"describe", "-o", "json", "web"},
		{"plan", "--save", l.Path("after.plan"), manifest},
		{"plan", "-o", "json", manifest},
		{"snapshot", "web"},
		{"get", "-o", "json", "web"},
		{"describe", "web"},
		{"events", "-o", "json", "web"},
		{"render", "--cri", manifest},
		{"doctor", "--bundle", l.Path("bundle.tgz")},
	} {
		code, stdout, stderr := l.Call(args...)
		if code != exit.OK && args[0] != "doctor" {
			t.Fatalf("%v: exit code %d\n%s%s", args, code, stdout, stderr)
		}
		all.WriteString(stdout + stderr)
	}
	for _, file := range []string{"before.plan", "after.plan"} {
		text, err := os.ReadFile(l.Path(file))
		if err != nil {
			t.Fatal(err)
		}
		all.Write(text)
	}
	all.WriteString(unpackBundle(t, l.Path("bundle.tgz")))
	for _, c := range l.Created().Containers {
		text, err := json.Marshal(c.GetAnnotations())
		if err != nil {
			t.Fatal(err)
		}
		all.Write(text)
	}
	return all.String()
}

func unpackBundle(t *testing.T, path string) string {
	t.Helper()
	packed, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	zipped, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for r := tar.NewReader(zipped); ; {
		if _, err := r.Next(); errors.Is(err, io.EOF) {
			return all.String()
		} else if err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(&all, r); err != nil {
			t.Fatal(err)
		}
	}
}

// TestOutputDependsOnTheMachineKey checks that output which depends on a Secret value also depends on the
// machine's key. Without the key, a reader could find a value of six digits by trying all of them.
func TestOutputDependsOnTheMachineKey(t *testing.T) {
	words := func(text string) map[string]bool {
		found := map[string]bool{}
		for _, word := range regexp.MustCompile(`[0-9a-f]{8,}`).FindAllString(text, -1) {
			found[word] = true
		}
		return found
	}
	text := allOutput(t, "271828", oneKey)
	here, other, there := words(text), words(allOutput(t, "314159", oneKey)), words(allOutput(t, "271828", anotherKey))
	depend := 0
	for word := range here {
		if other[word] {
			continue
		}
		depend++
		if there[word] {
			t.Errorf("%s depends on the secret, but not on the key: …%s…", word, around(text, word))
		}
	}
	if depend == 0 || len(here) < 10 {
		t.Errorf("only %d of %d words depend on the secret: the test checks the wrong words", depend, len(here))
	}
	// The fraction of a time can be the value by chance.
	text = regexp.MustCompile(`\.\d+Z`).ReplaceAllString(text, "Z")
	for _, secret := range []string{"271828", "MjcxODI4", oneKey} {
		if strings.Contains(text, secret) {
			t.Errorf("the output has %s: …%s…", secret, around(text, secret))
		}
	}
}

func around(text, word string) string {
	i := strings.Index(text, word)
	return text[max(0, i-80):min(len(text), i+len(word)+20)]
}

// TestLosingTheKeyRestartsNothing checks that podctl restarts no container when the key is lost. It reports that it
// cannot compare the Secrets, and still detects other changes.
func TestLosingTheKeyRestartsNothing(t *testing.T) {
	l := newLab(t)
	manifest := l.pin("271828")
	l.Must("apply", manifest)
	before := len(l.Created().Containers)
	if err := os.Remove(l.Path("state/digest.key")); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if code, stdout, stderr := l.Call("plan", "--exit-code", manifest); code != exit.OK ||
			!strings.Contains(stdout, "unknown whether the Secrets in its environment have changed") {
			t.Errorf("plan: exit code %d\n%s%s", code, stdout, stderr)
		}
		l.Must("apply", manifest)
	}
	if after := len(l.Created().Containers); after != before {
		t.Errorf("%d containers were started without the key", after-before)
	}
	text, err := os.ReadFile(manifest)
	if err == nil {
		err = os.WriteFile(manifest, bytes.Replace(text, []byte("i:1"), []byte("i:2"), 1), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	if stdout, _ := l.Must("plan", manifest); !strings.Contains(stdout, "image: i:1 -> i:2") ||
		strings.Contains(stdout, "secret changed") {
		t.Errorf("an edit of the image:\n%s", stdout)
	}
}

// TestAnotherValueReplacesTheContainer checks that podctl detects a changed value with the key.
func TestAnotherValueReplacesTheContainer(t *testing.T) {
	l := newLab(t)
	l.Must("apply", l.pin("271828"))
	stdout, _ := l.Must("plan", l.pin("314159"))
	if !strings.Contains(stdout, "env[PIN].value: (secret changed)") || !strings.Contains(stdout, "replace") {
		t.Errorf("plan:\n%s", stdout)
	}
}

// TestASnapshotOnAnotherMachine checks that Secret values which cannot be compared on another machine do not count as
// changed.
func TestASnapshotOnAnotherMachine(t *testing.T) {
	here, there := newLab(t), newLab(t)
	here.Must("apply", here.pin("271828"))
	snapshot, _ := here.Must("snapshot", "web")
	if err := os.WriteFile(there.Path("snapshot.json"), []byte(snapshot), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"", anotherKey} {
		if key != "" {
			there.writeKey(key)
		}
		for _, value := range []string{"271828", "314159"} {
			code, stdout, stderr := there.Call("plan", "--snapshot", there.Path("snapshot.json"), "--exit-code",
				there.pin(value))
			if code != exit.OK || !strings.Contains(stdout, "unknown whether the Secrets") {
				t.Errorf("key %q, value %s: exit code %d\n%s%s", key, value, code, stdout, stderr)
			}
		}
	}
	if err := os.WriteFile(here.Path("snapshot.json"), []byte(snapshot), 0o600); err != nil {
		t.Fatal(err)
	}
	stdout, _ := here.Must("plan", "--snapshot", here.Path("snapshot.json"), here.pin("314159"))
	if !strings.Contains(stdout, "(secret changed)") {
		t.Errorf("on its own machine:\n%s", stdout)
	}
}
