package terminal

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// TestDevicesAreNotReplaced: Into replaces a file, and writes to a device.
func TestDevicesAreNotReplaced(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	read := make(chan string)
	go func() {
		text, err := os.ReadFile(pipe)
		read <- fmt.Sprint(string(text), err)
	}()
	s := NewIO(&Env{})
	write := func(w io.Writer) error {
		_, err := io.WriteString(w, "plan")
		return err
	}
	if err := s.Into(pipe, write); err != nil {
		t.Fatal(err)
	}
	if text := <-read; text != "plan<nil>" {
		t.Errorf("the pipe returned %q", text)
	}
	if info, err := os.Lstat(pipe); err != nil || info.Mode().Type() != os.ModeNamedPipe {
		t.Errorf("the pipe became a %v: %v", info.Mode(), err)
	}
}
