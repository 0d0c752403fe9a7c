package agent

import (
	"bytes"
	"cmp"
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

// showFlag makes the process print the settings that result from the command line and the configuration. It prints none
// if they are invalid. It then checks what the start of an agent needs besides valid settings, such as files.
const showFlag = "show-configuration"

// settings has the values of all flags of an agent, and its sources.
type settings map[string]string

// settingsOf returns the settings of a command line.
func settingsOf(cmd *cobra.Command, args []string) settings {
	s := settings{"arguments": strings.Join(args, "\n")}
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if f.Name != showFlag {
			s[f.Name] = f.Value.String()
		}
	})
	return s
}

// changes returns the names of the settings that have changed in the configuration since the start. It reads and checks
// the configuration in a new process, as a restarted agent does.
func (s settings) changes(ctx context.Context) ([]string, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	var stderr bytes.Buffer
	args := append([]string{"--" + showFlag + "=true"}, os.Args[1:]...)
	cmd := exec.CommandContext(ctx, program, args...) // it is this program
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("%s", strings.TrimSpace(strings.TrimPrefix(stderr.String(), "podctl: ")))
	}
	return s.compare(out, err)
}

// compare returns the names of the settings that differ in the output of the new process. fault is the error of that
// process. If the settings are valid and unchanged, it does not matter, because the agent does not restart.
func (s settings) compare(out []byte, fault error) (changed []string, err error) {
	var next settings
	if err = json.Unmarshal(out, &next); err != nil {
		return nil, cmp.Or(fault, fmt.Errorf("the new process does not print its configuration: %w", err))
	}
	for _, name := range slices.Sorted(maps.Keys(next)) {
		if next[name] != s[name] {
			changed = append(changed, name)
		}
	}
	if len(changed) > 0 && fault != nil {
		return nil, fault
	}
	return changed, nil
}

// signals has the signals that an agent receives, from its start until another agent replaces it.
type signals struct {
	ends, hangups chan os.Signal
}

// receiveSignals starts to receive signals. An early SIGHUP would end the process. Instead, the channel keeps it until
// the agent handles it.
func receiveSignals() signals {
	s := signals{ends: make(chan os.Signal, 1), hangups: make(chan os.Signal, 1)}
	signal.Notify(s.ends, syscall.SIGINT, syscall.SIGTERM)
	signal.Notify(s.hangups, syscall.SIGHUP)
	return s
}

// restart replaces this process with a new one that has the same ID. It returns nil if a signal to end arrived in the
// meantime. After that check, such a signal ends the process at once, so that none is lost.
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
	err = syscall.Exec(program, os.Args, os.Environ()) // it is this program
	return fmt.Errorf("restarting %s: %w", program, err)
}
