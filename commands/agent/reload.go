package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
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

// changes returns the names of the settings that the configuration has changed since. A process of its own reads it, as the one that
// will follow does.
func (s settings) changes(ctx context.Context) ([]string, error) {
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
		if next[name] != s[name] {
			changed = append(changed, name)
		}
	}
	return changed, nil
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
