package state

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/podctl/podctl/runtime/state/statedir"
)

// TestFilesOfContainersAreTrimmed checks that a container that writes endlessly to files from podctl uses little disk
// space. The end of its message stays, also while it continues to write. Small files are not changed.
func TestFilesOfContainersAreTrimmed(t *testing.T) {
	pod := Layout{Root: t.TempDir()}.Pod("u1")
	write := func(path string, text []byte) {
		t.Helper()
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	message := func() string {
		t.Helper()
		path, err := pod.TerminationLogs("app").New()
		if err != nil {
			t.Fatal(err)
		}
		return path
	}
	large, small := message(), message()
	begin, end := bytes.Repeat([]byte("x"), 3<<20), bytes.Repeat([]byte("y"), terminationEnd)
	write(large, append(begin, end...))
	write(small, end)
	write(pod.EtcHosts(), bytes.Repeat([]byte("z"), EtcHostsMax+1))
	outside := filepath.Join(t.TempDir(), "file")
	write(outside, begin)
	if err := os.Symlink(outside, filepath.Join(filepath.Dir(large), "link")); err != nil {
		t.Fatal(err)
	}
	writer, err := os.OpenFile(large, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = writer.Close() })
	for range 2 {
		if err := pod.TrimFiles(); err != nil {
			t.Fatal(err)
		}
		if size := statedir.Size(large); size > 2*terminationEnd {
			t.Errorf("the message takes %d bytes", size)
		}
		if text, err := os.ReadFile(large); err != nil || !bytes.HasSuffix(text, end) {
			t.Errorf("the end of the message is %q, %v", text[max(len(text)-10, 0):], err)
		}
		if _, err := writer.Write(append(begin, end...)); err != nil {
			t.Fatal(err)
		}
	}
	if text, err := os.ReadFile(small); err != nil || !bytes.Equal(text, end) {
		t.Errorf("a small message changes: %v", err)
	}
	if info, err := os.Stat(pod.EtcHosts()); err != nil || info.Size() != EtcHostsMax {
		t.Errorf("the hosts file: %v %v", info, err)
	}
	if text, err := os.ReadFile(outside); err != nil || !bytes.Equal(text, begin) {
		t.Errorf("a file that a link leads to changes: %v", err)
	}
}

// TestNothingToTrim checks that a pod without files or without a directory is not an error.
func TestNothingToTrim(t *testing.T) {
	layout := Layout{Root: t.TempDir()}
	for _, pod := range []Pod{layout.Pod("gone"), (Layout{Root: filepath.Join(layout.Root, "missing")}).Pod("u1")} {
		if err := pod.TrimFiles(); err != nil {
			t.Error(err)
		}
	}
	if err := layout.Pod("empty").MakeDir(layout.Pod("empty").Dir(), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := layout.Pod("empty").TrimFiles(); err != nil {
		t.Error(err)
	}
}
