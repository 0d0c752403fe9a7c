package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/podctl/podctl/runtime"
	"github.com/podctl/podctl/runtime/agent"
	"github.com/podctl/podctl/runtime/agent/api"
	"github.com/podctl/podctl/runtime/cri"
)

// showFlag prints what the command line and the configuration come to.
const showFlag = "show-configuration"

// settings are the values of all flags of an agent, and its sources.
type settings map[string]string

// settingsOf are those of a command line.
func settingsOf(cmd *cobra.Command, args []string) settings {
	s := settings{"arguments": strings.Join(args, "\n")}
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if f.Name != showFlag {
			s[f.Name] = f.Value.String()
		}
	})
	return s
}

// reloading is an agent that reads its configuration again.
type reloading struct {
	*agent.Agent
	engine *runtime.Engine
	now    settings
	log    *slog.Logger
	// restart is told that the configuration has changed.
	restart chan struct{}
	// hangups are signals to reload.
	hangups <-chan os.Signal
}

// errRestart says that the agent is to start again, with another configuration.
var errRestart = errors.New("restart")

// restartWait bounds how long passes may come to their end before a restart. One that is cut off is
// taken up by the agent that follows.
const (
	restartWait = 2 * time.Second
	answerWait  = 100 * time.Millisecond
)

// Reload reads the configuration. If it is as before the agent reads every source; else it starts
// again, which no pod notices. A configuration that is wrong changes nothing.
func (r *reloading) Reload(ctx context.Context) (*api.Reloaded, error) {
	changed, err := r.changes(ctx)
	if err != nil {
		return nil, fmt.Errorf("the agent goes on with the configuration that it has: %w", err)
	}
	if len(changed) == 0 {
		return r.Agent.Reload(ctx)
	}
	r.log.Info("starting again with another configuration", "changed", strings.Join(changed, ","))
	select {
	case r.restart <- struct{}{}:
	default:
	}
	return &api.Reloaded{}, nil
}

// changes are the names of what the configuration has changed. A process of its own reads it, as the
// one that will follow does.
func (r *reloading) changes(ctx context.Context) ([]string, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	var stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, program, append([]string{"--" + showFlag + "=true"}, os.Args[1:]...)...) //nolint:gosec // it is this program
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s", strings.TrimSpace(strings.TrimPrefix(stderr.String(), "podctl: ")))
	}
	var next settings
	if err = json.Unmarshal(out, &next); err != nil {
		return nil, fmt.Errorf("%s does not print its configuration: %w", program, err)
	}
	var changed []string
	for _, name := range slices.Sorted(maps.Keys(next)) {
		if next[name] != r.now[name] {
			changed = append(changed, name)
		}
	}
	return changed, nil
}

// hear reloads on signals.
func (r *reloading) hear(ctx context.Context) {
	for {
		select {
		case <-r.hangups:
			notifyReloading(func() {
				done, err := r.Reload(ctx)
				if err != nil {
					r.log.Error("the configuration cannot be read", "error", err.Error())
					return
				}
				for _, name := range done.Reading {
					r.log.Warn("the source is still being read", "source", name)
				}
			})
		case <-ctx.Done():
			return
		}
	}
}

// run keeps pods until the context ends, or a restart is due.
func (r *reloading) run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
		return r.end(ended)
	case <-r.restart:
	}
	// The answer to who asked for it goes out first.
	_ = cri.Sleep(ctx, answerWait)
	cancel(agent.ErrHandover)
	select {
	case err := <-ended:
		if err != nil {
			r.log.Warn("the agent ended with an error before it starts again", "error", err.Error())
		}
	case <-time.After(restartWait):
	}
	return errRestart
}

// turnWait is how long the loop may take to notice that the agent ends.
const turnWait = time.Second

// end waits until the agent has ended: deletions that run come to their end. It does not wait for a loop that is busy, and writes
// nothing then: the loop may be writing a log that nothing reads.
func (r *reloading) end(ended <-chan error) error {
	told := time.Now()
	select {
	case err := <-ended:
		return err
	case <-time.After(turnWait):
	}
	if r.Lingers(told) {
		return nil
	}
	return <-ended
}

// signals are those that an agent hears from its start until another follows it.
type signals struct {
	ends, hangups chan os.Signal
}

// hearSignals begins to hear them. A signal to reload that comes before the agent has begun would end the
// process; it waits for the agent.
func hearSignals() signals {
	s := signals{ends: make(chan os.Signal, 1), hangups: make(chan os.Signal, 1)}
	signal.Notify(s.ends, syscall.SIGINT, syscall.SIGTERM)
	signal.Notify(s.hangups, syscall.SIGHUP)
	return s
}

// restart puts a new process in the place of this one, with the same id. It returns nil if this one was told to
// end meanwhile. From then on a signal to end ends the process at once: none is lost on the way.
func (s signals) restart() error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	signal.Ignore(syscall.SIGHUP)
	signal.Reset(syscall.SIGINT, syscall.SIGTERM)
	select {
	case <-s.ends:
		return nil
	default:
	}
	return fmt.Errorf("starting %s again: %w", program, syscall.Exec(program, os.Args, os.Environ())) //nolint:gosec // it is this program
}
