package kubernetes

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// transcript collects the output of a program that runs.
type transcript struct {
	mu   sync.Mutex
	text bytes.Buffer
	// more holds a value after each write.
	more chan struct{}
}

func newTranscript() *transcript { return &transcript{more: make(chan struct{}, 1)} }

// Write adds output.
func (o *transcript) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	select {
	case o.more <- struct{}{}:
	default:
	}
	return o.text.Write(p)
}

func (o *transcript) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// session is a program that runs beside the tests and is used like a user does.
type session struct {
	cmd    *exec.Cmd
	output *transcript
	// input is the terminal of the program; nil without one.
	input *os.File
	ended chan struct{}
}

// startSession starts a program whose output is collected.
func startSession(t *testing.T, cmd *exec.Cmd) *session {
	t.Helper()
	s := &session{cmd: cmd, output: newTranscript(), ended: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = s.output, s.output
	s.start(t)
	return s
}

// startTerminal starts a program in a terminal of 45 rows and 123 columns.
func startTerminal(t *testing.T, cmd *exec.Cmd) *session {
	t.Helper()
	master, slave, err := openTerminal(45, 123)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = master.Close() })
	defer slave.Close() //nolint:errcheck // the program has it
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	s := &session{cmd: cmd, output: newTranscript(), input: master, ended: make(chan struct{})}
	s.start(t)
	go io.Copy(s.output, master) //nolint:errcheck // it ends with an error when the program has ended
	return s
}

// openTerminal returns both ends of a new terminal.
func openTerminal(rows, columns uint16) (master, slave *os.File, err error) {
	master, err = os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, nil, err
	}
	fd := int(master.Fd())
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		err = unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: rows, Col: columns})
	}
	if err == nil {
		slave, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	}
	if err != nil {
		return nil, nil, errors.Join(err, master.Close())
	}
	return master, slave, nil
}

func (s *session) start(t *testing.T) {
	t.Helper()
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = s.cmd.Wait() // the caller looks at the state
		close(s.ended)
	}()
	t.Cleanup(s.kill)
}

// kill ends the program at once.
func (s *session) kill() {
	_ = s.cmd.Process.Kill() // it may have ended
	<-s.ended
}

// send types a text into the terminal.
func (s *session) send(t *testing.T, text string) {
	t.Helper()
	if _, err := s.input.WriteString(text); err != nil {
		t.Fatal(err)
	}
}

// expect waits until the output has a text count times.
func (s *session) expect(t *testing.T, text string, count int) {
	t.Helper()
	limit := time.After(patience)
	for strings.Count(s.output.String(), text) < count {
		select {
		case <-s.output.more:
		case <-limit:
			t.Fatalf("%q is not %d times in the output of %q:\n%s", text, count, s.cmd.Args, s.output)
		}
	}
}

// end waits until the program has ended, and checks its exit code.
func (s *session) end(t *testing.T, code int) {
	t.Helper()
	select {
	case <-s.ended:
	case <-time.After(patience):
		t.Fatalf("%q does not end:\n%s", s.cmd.Args, s.output)
	}
	if got := s.cmd.ProcessState.ExitCode(); got != code {
		t.Errorf("%q: exit code %d, want %d\n%s", s.cmd.Args, got, code, s.output)
	}
}
