package inspect_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/podctl/podctl/commands/exit"
	"github.com/podctl/podctl/runtime/runtimetest"
)

// TestLogsOfBothStreams: the output of a container is printed as one stream in its order, unless --stderr splits it.
func TestLogsOfBothStreams(t *testing.T) {
	l := newLab(t)
	l.Must("apply", l.Write("web", "  containers: [{name: a, image: 'i:1'}]\n"))
	files, err := filepath.Glob(l.Path("logs/*/a/0.log"))
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	const at = "2026-05-04T12:00:00.000000000Z"
	text := at + " stdout F one\n" + at + " stderr F two\n" + at + " stdout F three\n"
	if err := os.WriteFile(files[0], []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ flag, stdout, stderr string }{
		{"--stderr=false", "one\ntwo\nthree\n", ""}, {"--stderr", "one\nthree\n", "two\n"},
	} {
		if stdout, stderr := l.Must("logs", c.flag, "web"); stdout != c.stdout || stderr != c.stderr {
			t.Errorf("%s: %q %q", c.flag, stdout, stderr)
		}
	}
}

// TestFollowingEndsInTime: --timeout ends logs -f without an error, while it reads a log and while it asks the runtime
// for the next run. It is an error if the runtime never answered.
func TestFollowingEndsInTime(t *testing.T) {
	l := newLab(t)
	l.Must("apply", l.Write("web", "  containers: [{name: a, image: 'i:1'}]\n"))
	for range 2 {
		l.InTime("--timeout", []string{"logs", "-f", "web"}, func(code int, text string) bool {
			return code == exit.OK && text == ""
		})
	}
	proxy, err := runtimetest.StartProxy(t.Context(), l.Path("proxy.sock"), l.Path("cri.sock"))
	if err != nil {
		t.Fatal(err)
	}
	defer proxy.Close() //nolint:errcheck // the test is over
	for _, method := range []string{"ListContainers", "ContainerStatus"} {
		proxy.Disturb(runtimetest.Disturbance{Method: method, Hang: true})
		l.InTime("--timeout", []string{
			"logs", "-f", "--runtime-endpoint", "unix://" + l.Path("proxy.sock"), "web",
		}, func(code int, text string) bool {
			printed := strings.Contains(text, "gave up after")
			return (code == exit.Error) == printed && printed == (method == "ListContainers")
		})
	}
}
