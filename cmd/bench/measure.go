package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"
)

// sample is one run of one contender. cpu is the CPU time of its processes. It is zero for calls of the bench itself.
type sample struct{ wall, cpu time.Duration }

// step is an action that is not timed. A nil step does nothing.
type step func(context.Context) error

func (s step) do(ctx context.Context) error {
	if s == nil {
		return nil
	}
	return s(ctx)
}

// contender is one way to do the work of a workload.
type contender struct {
	name string
	// before and after run around each run.
	before, after step
	run           func(context.Context) (sample, error)
}

// workload is work that several contenders do in turn.
type workload struct {
	name, what string
	contenders []contender
	// rounds is how often each contender runs; zero means usualRounds.
	rounds int
	// begin returns the contenders that need podctl and the runtime. end runs after all rounds.
	begin func(context.Context) ([]contender, error)
	end   step
	// limit is the target of the first contender; the zero value sets none.
	limit limit
}

// usualRounds is how often each contender of a workload runs.
const usualRounds = 15

// measure runs the contenders in turn, A B C A B C …, so that a machine whose speed drifts is equally slow for all.
// The first round warms up and does not count. If rounds is not zero, it replaces that of the workload.
func (w *workload) measure(ctx context.Context, rounds int) (result *Result, err error) {
	defer func() { err = errors.Join(err, w.end.do(context.WithoutCancel(ctx))) }()
	if w.begin != nil {
		if w.contenders, err = w.begin(ctx); err != nil {
			return nil, err
		}
	}
	samples := make([][]sample, 1+cmp.Or(rounds, w.rounds, usualRounds))
	for i := range samples {
		for j := range w.contenders {
			s, failure := w.contenders[j].once(ctx)
			if failure != nil {
				return nil, fmt.Errorf("%s: %w", w.contenders[j].name, failure)
			}
			samples[i] = append(samples[i], s)
		}
	}
	return w.summarize(samples[1:]), nil
}

// settle is the pause before each run. Network namespaces and cgroups vanish some time after the calls that remove
// them, and delay new ones.
const settle = 100 * time.Millisecond

func (c *contender) once(ctx context.Context) (sample, error) {
	if err := c.before.do(ctx); err != nil {
		return sample{}, err
	}
	time.Sleep(settle)
	s, err := c.run(ctx)
	return s, errors.Join(err, c.after.do(context.WithoutCancel(ctx)))
}

// summarize computes medians, quartiles, and the ratios of the first contender to the others, round by round.
func (w *workload) summarize(rounds [][]sample) *Result {
	r := &Result{Name: w.name, What: w.what}
	for i := range w.contenders {
		of := func(figure func(a, podctl sample) float64) (values []float64) {
			for _, samples := range rounds {
				values = append(values, figure(samples[i], samples[0]))
			}
			return values
		}
		f := Figures{Name: w.contenders[i].name, Runs: len(rounds)}
		f.Wall = spreadOf(of(func(a, _ sample) float64 { return milliseconds(a.wall) }))
		f.CPU = quantile(of(func(a, _ sample) float64 { return milliseconds(a.cpu) }), 0.5)
		if i > 0 {
			f.Ratio = quantile(of(func(a, podctl sample) float64 {
				return float64(podctl.wall) / float64(a.wall)
			}), 0.5)
		}
		r.Contenders = append(r.Contenders, f)
	}
	r.Target = w.limit.judge(r)
	return r
}

// limit is a target for the first contender. It takes at most factor times as long as another, or at most ms
// milliseconds, or at most this share of one processor.
type limit struct {
	against              string
	factor, ms, cpuShare float64
}

func (l limit) judge(r *Result) Target {
	podctl := &r.Contenders[0]
	switch {
	case l.cpuShare > 0:
		return Target{Unit: "of one processor", Limit: l.cpuShare, Measured: podctl.CPU / podctl.Wall.Median}
	case l.against == "":
		return Target{Unit: "milliseconds", Limit: l.ms, Measured: podctl.Wall.Median}
	}
	t := Target{Against: l.against, Limit: l.factor}
	for i := range r.Contenders {
		if r.Contenders[i].Name == l.against {
			t.Measured = r.Contenders[i].Ratio
		}
	}
	return t
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// quantile interpolates between the two nearest values.
func quantile(values []float64, q float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	at := q * float64(len(sorted)-1)
	low := int(at)
	high := min(low+1, len(sorted)-1)
	return sorted[low] + (at-float64(low))*(sorted[high]-sorted[low])
}

func spreadOf(values []float64) Spread {
	return Spread{Median: quantile(values, 0.5), Low: quantile(values, 0.25), High: quantile(values, 0.75)}
}

// clocked measures calls of the bench itself.
func clocked(work step) func(context.Context) (sample, error) {
	return func(ctx context.Context) (sample, error) {
		begun := time.Now()
		err := work(ctx)
		return sample{wall: time.Since(begun)}, err
	}
}

// timed runs a command and returns its usage and its standard output. The output goes to files, because a reader would
// use the processor while the process runs.
func timed(ctx context.Context, name string, args ...string) (s sample, output string, err error) {
	cmd := exec.CommandContext(ctx, name, args...)
	var files [2]*os.File
	for i := range files {
		if files[i], err = os.CreateTemp("", "podctl-bench-output-"); err != nil {
			return s, "", err
		}
		defer func() { files[i].Close(); os.Remove(files[i].Name()) }() //nolint:errcheck // nothing is lost
	}
	cmd.Stdout, cmd.Stderr = files[0], files[1]
	begun := time.Now()
	err = cmd.Run()
	s.wall = time.Since(begun)
	if cmd.ProcessState != nil {
		s.cpu = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	}
	stdout, _ := os.ReadFile(files[0].Name()) // Reading a file that was just written cannot fail.
	stderr, _ := os.ReadFile(files[1].Name())
	if err != nil {
		err = fmt.Errorf("%s %s: %w\n%s%s", name, strings.Join(args, " "), err, stdout, stderr)
	}
	return s, string(stdout), err
}
