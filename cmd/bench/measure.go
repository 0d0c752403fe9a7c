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

// sample is one run of one contender.
type sample struct {
	wall time.Duration
	// cpu and rss are of the contender's own process, and zero for calls that the bench
	// makes itself. The memory is only looked at in the round that is not counted.
	cpu time.Duration
	rss int64
}

// step is something that is done and not timed; a nil one is nothing.
type step func(context.Context) error

func (s step) do(ctx context.Context) error {
	if s == nil {
		return nil
	}
	return s(ctx)
}

// contender is one way to do a workload's work.
type contender struct {
	name string
	// before and after surround each run.
	before, after step
	run           func(context.Context) (sample, error)
}

// workload is some work that several contenders do in turn.
type workload struct {
	name, what string
	contenders []contender
	// rounds is how often each contender runs, when it is not the usual number.
	rounds int
	// begin and end surround all rounds; begin may make the contenders, which need podctl and the runtime.
	begin, end step
	// limits are what the first contender may take.
	limits []limit
	// trips counts the calls to the runtime of one run of podctl; it may be nil.
	trips func(context.Context) (map[string]int, error)
}

// measure runs the contenders in turn, A B C A B C …, so that a machine whose speed
// drifts is as slow for one as for another. The first round is not counted; it is the one
// in which the memory is looked at.
func (w *workload) measure(ctx context.Context, rounds int) (result *Result, err error) {
	defer func() { err = errors.Join(err, w.end.do(context.WithoutCancel(ctx))) }()
	if err = w.begin.do(ctx); err != nil {
		return nil, err
	}
	samples := make([][]sample, 1+cmp.Or(w.rounds, rounds))
	roundCtx := withMemory(ctx)
	for i := range samples {
		for j := range w.contenders {
			s, failure := w.contenders[j].once(roundCtx)
			if failure != nil {
				return nil, fmt.Errorf("%s: %w", w.contenders[j].name, failure)
			}
			samples[i] = append(samples[i], s)
		}
		roundCtx = ctx
	}
	result = w.summarize(samples[0], samples[1:])
	if w.trips != nil {
		result.RoundTrips, err = w.trips(ctx)
	}
	return result, err
}

// settle is how long the kernel has before each run to take down what the run before
// left: namespaces of networks and cgroups go some time after the calls that removed them,
// and keep new ones waiting.
const settle = 100 * time.Millisecond

func (c *contender) once(ctx context.Context) (sample, error) {
	if err := c.before.do(ctx); err != nil {
		return sample{}, err
	}
	time.Sleep(settle)
	s, err := c.run(ctx)
	return s, errors.Join(err, c.after.do(context.WithoutCancel(ctx)))
}

// summarize turns the samples of the counted rounds into figures: medians, spread, and
// the ratios of podctl to the others, round by round. The first round has the memory.
func (w *workload) summarize(first []sample, rounds [][]sample) *Result {
	r := &Result{Name: w.name, What: w.what}
	for i := range w.contenders {
		of := func(figure func(a, podctl sample) float64) (values []float64) {
			for _, samples := range rounds {
				values = append(values, figure(samples[i], samples[0]))
			}
			return values
		}
		f := Figures{Name: w.contenders[i].name, Runs: len(rounds), MaxRSS: float64(first[i].rss) / (1 << 20)}
		f.Wall = spreadOf(of(func(a, _ sample) float64 { return milliseconds(a.wall) }))
		f.CPU = quantile(of(func(a, _ sample) float64 { return milliseconds(a.cpu) }), 0.5)
		if i > 0 {
			f.Ratio = quantile(of(func(a, podctl sample) float64 { return float64(podctl.wall) / float64(a.wall) }), 0.5)
		}
		r.Contenders = append(r.Contenders, f)
	}
	for _, l := range w.limits {
		r.Targets = append(r.Targets, l.judge(r))
	}
	return r
}

// limit is a target: podctl takes at most factor times as long as a contender, or at
// most so many milliseconds, so many MiB, or that share of one processor.
type limit struct {
	against  string
	factor   float64
	ms       float64
	rss      float64
	cpuShare float64
}

func (l limit) judge(r *Result) Target {
	podctl := &r.Contenders[0]
	switch {
	case l.rss > 0:
		return target("largest memory in MiB", l.rss, podctl.MaxRSS)
	case l.cpuShare > 0:
		return target("of one processor", l.cpuShare, podctl.CPU/podctl.Wall.Median)
	case l.against == "":
		return target("milliseconds", l.ms, podctl.Wall.Median)
	}
	ratio := 0.0 // A contender that was not measured.
	for i := range r.Contenders {
		if r.Contenders[i].Name == l.against {
			ratio = r.Contenders[i].Ratio
		}
	}
	return target("times "+l.against, l.factor, ratio)
}

func target(text string, limit, measured float64) Target {
	return Target{Text: text, Limit: limit, Measured: measured, Met: measured > 0 && measured <= limit}
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

// clocked times calls that the bench makes itself.
func clocked(work func() error) (sample, error) {
	begun := time.Now()
	err := work()
	return sample{wall: time.Since(begun)}, err
}

// ended is a process that has ended, with what it printed.
type ended struct {
	sample
	stdout, stderr string
}

// execute runs a command; the kernel says what it used. It prints to files: a reader would work while the
// process does.
func execute(ctx context.Context, name string, args ...string) (e ended, err error) {
	cmd := exec.CommandContext(ctx, name, args...)
	var files [2]*os.File
	for i := range files {
		if files[i], err = os.CreateTemp("", "podctl-bench-output-"); err != nil {
			return e, err
		}
		defer func() { files[i].Close(); os.Remove(files[i].Name()) }() //nolint:errcheck // nobody needs it any more
	}
	cmd.Stdout, cmd.Stderr = files[0], files[1]
	begun := time.Now()
	if err = cmd.Start(); err != nil {
		return e, err
	}
	peak := func() int64 { return 0 }
	if looksAtMemory(ctx) {
		peak = watchMemory(cmd.Process.Pid)
	}
	err = cmd.Wait()
	e.wall, e.rss = time.Since(begun), peak()
	e.cpu = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	stdout, _ := os.ReadFile(files[0].Name()) // It has just been written.
	stderr, _ := os.ReadFile(files[1].Name())
	e.stdout, e.stderr = string(stdout), string(stderr)
	if err != nil {
		err = fmt.Errorf("%s %s: %w\n%s%s", name, strings.Join(args, " "), err, e.stdout, e.stderr)
	}
	return e, err
}

// timed runs a command for what it takes.
func timed(ctx context.Context, name string, args ...string) (sample, error) {
	e, err := execute(ctx, name, args...)
	return e.sample, err
}

type memoryKey struct{}

// withMemory lets execute look at the memory of its processes. That keeps a processor busy
// on which the runtime would work: what is timed must not do it.
func withMemory(ctx context.Context) context.Context {
	return context.WithValue(ctx, memoryKey{}, true)
}

func looksAtMemory(ctx context.Context) bool { return ctx.Value(memoryKey{}) != nil }

// memoryPause is how often the memory of a process is looked at.
const memoryPause = 3 * time.Millisecond

// watchMemory looks at the largest memory of a process until it is asked for it, in
// bytes. What wait(2) tells is no use: it counts the memory of the process that started
// this one.
func watchMemory(pid int) func() int64 {
	done, result := make(chan struct{}), make(chan int64)
	go func() {
		peak := 0.0
		for {
			select {
			case <-done:
				result <- int64(peak * (1 << 20))
				return
			case <-time.After(memoryPause):
				peak = max(peak, mebibytes(pid, "VmHWM"))
			}
		}
	}()
	return func() int64 { close(done); return <-result }
}
