package commands

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/pprof"
	"runtime/trace"

	"github.com/spf13/pflag"
)

// profiling writes down what the process spends its time on, for those who work on
// podctl itself: its flags are not in the help.
type profiling struct {
	cpu, trace string
	// stops end what was begun, the last first.
	stops []func() error
}

func (p *profiling) addFlags(f *pflag.FlagSet) {
	f.StringVar(&p.cpu, "cpuprofile", "", "Write a CPU profile to this file, for go tool pprof")
	f.StringVar(&p.trace, "trace", "", "Write an execution trace to this file, for go tool trace")
	for _, name := range []string{"cpuprofile", "trace"} {
		if err := f.MarkHidden(name); err != nil {
			panic(err) // the flag was defined just above
		}
	}
}

// begin starts what the flags ask for.
func (p *profiling) begin() error {
	if err := p.start(p.cpu, pprof.StartCPUProfile, pprof.StopCPUProfile); err != nil {
		return err
	}
	return p.start(p.trace, trace.Start, trace.Stop)
}

func (p *profiling) start(path string, start func(io.Writer) error, stop func()) error {
	if path == "" {
		return nil
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("writing a profile: %w", err)
	}
	if err := start(f); err != nil {
		return errors.Join(fmt.Errorf("writing a profile: %w", err), f.Close())
	}
	p.stops = append(p.stops, func() error { stop(); return f.Close() })
	return nil
}

// end writes the files to their ends.
func (p *profiling) end() error {
	var errs []error
	for _, stop := range p.stops {
		errs = append(errs, stop())
	}
	p.stops = nil
	return errors.Join(errs...)
}
