package inspect_test

import (
	"context"
	"io"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/podctl/podctl/commands"
	"github.com/podctl/podctl/commands/commandstest"
	"github.com/podctl/podctl/commands/exit"
)

// onWrite calls a function after each write.
type onWrite struct {
	all  []byte
	then func(all string)
}

func (w *onWrite) Write(text []byte) (int, error) {
	w.all = append(w.all, text...)
	w.then(string(w.all))
	return len(text), nil
}

// TestWatchWorkloads: get -w prints a workload again when it changes, in each format, until it is interrupted.
func TestWatchWorkloads(t *testing.T) {
	l := newLab(t)
	path := l.Path("shop.yaml")
	if err := os.WriteFile(path, []byte(shop), 0o600); err != nil {
		t.Fatal(err)
	}
	l.Must("apply", "--wait", path)
	for _, c := range []struct{ format, replicas, after string }{
		{"text", "2", "web    2/2"}, {"json", "3", `"replicas": 3`}, {"name", "1", "deployment/web\ndeployment/web\n"},
	} {
		ctx, stop := context.WithCancelCause(t.Context())
		scaled := false
		var group sync.WaitGroup
		out := &onWrite{then: func(all string) {
			switch {
			case strings.Contains(all, c.after):
				stop(nil)
			case !scaled && strings.HasSuffix(all, "\n"):
				scaled = true
				group.Go(func() { l.Call("scale", "--replicas="+c.replicas, "deployment/web") })
			}
		}}
		code := commands.Main(ctx, commandstest.Env("", out, io.Discard, l.Clock.Now),
			l.Args("get", "-w", "deploy", "-o", c.format))
		group.Wait()
		if code != exit.OK && code != exit.Interrupted || !strings.Contains(string(out.all), c.after) {
			t.Errorf("-o %s: exit code %d\n%s", c.format, code, string(out.all))
		}
		stop(nil)
		l.Must("apply", "--wait", "--all")
	}
}
