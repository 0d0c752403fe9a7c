package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// sample is one run of one contender. cpu is the CPU time of its processes. It is zero for calls of the bench itself.
type sample struct{ wall, cpu time.Duration }

// step is an action that is not timed.
type step func(context.Context) error

// inTurn runs steps up to the first error. A nil step does nothing.
func inTurn(steps ...step) step {
	return func(ctx context.Context) (err error) {
		for i := 0; i < len(steps) && err == nil; i++ {
			if steps[i] != nil {
				err = steps[i](ctx)
			}
		}
		return err
	}
}

// contender is one way to do the work of a workload.
type contender struct {
	name string
	// before and after run around each run.
	before, after step
	run           func(context.Context) (sample, error)
}

// workload is work that several contenders do in turn. Its result has the name, the description and the target.
type workload struct {
	Result

	// rounds is how often each contender runs.
	rounds int
	// begin returns the contenders. end runs after all rounds.
	begin func(context.Context) ([]contender, error)
	end   step
}

// about returns a workload without contenders.
func about(rounds int, name, what string, target Target) workload {
	return workload{Result: Result{Name: name, What: what, Target: target}, rounds: rounds}
}

// measureAll measures the wanted workloads. A failed workload does not lose the results of the others.
func measureAll(ctx context.Context, o *options, all []workload) (results []Result, err error) {
	for i := range all {
		w := &all[i]
		if !o.only.MatchString(w.Name) {
			continue
		}
		fmt.Fprintln(os.Stderr, "bench:", w.Name)
		if result, failure := w.measure(ctx, o.rounds); failure == nil {
			results = append(results, *result)
		} else {
			err = errors.Join(err, fmt.Errorf("%s: %w", w.Name, failure))
		}
	}
	return results, err
}

// measure runs the contenders in turn, A B C A B C …, so that a machine whose speed drifts is equally slow for all.
// The first round warms up and does not count. If rounds is not zero, it replaces that of the workload.
func (w *workload) measure(ctx context.Context, rounds int) (result *Result, err error) {
	defer func() { err = errors.Join(err, inTurn(w.end)(context.WithoutCancel(ctx))) }()
	contenders, err := w.begin(ctx)
	if err != nil {
		return nil, err
	}
	samples := make([][]sample, 1+cmp.Or(rounds, w.rounds))
	for i := range samples {
		for j := range contenders {
			s, failure := contenders[j].once(ctx)
			if failure != nil {
				return nil, fmt.Errorf("%s: %w", contenders[j].name, failure)
			}
			samples[i] = append(samples[i], s)
		}
	}
	return w.summarize(contenders, samples[1:]), nil
}

// settle is the pause before each run. Network namespaces and cgroups vanish some time after the calls that remove
// them, and delay new ones.
const settle = 100 * time.Millisecond

func (c *contender) once(ctx context.Context) (sample, error) {
	if err := inTurn(c.before)(ctx); err != nil {
		return sample{}, err
	}
	time.Sleep(settle)
	s, err := c.run(ctx)
	return s, errors.Join(err, inTurn(c.after)(context.WithoutCancel(ctx)))
}

// summarize computes medians, quartiles, and the ratios of the first contender to the others, round by round.
func (w *workload) summarize(contenders []contender, rounds [][]sample) *Result {
	r := w.Result
	for i := range contenders {
		of := func(figure func(a, podctl sample) float64) (values []float64) {
			for _, samples := range rounds {
				values = append(values, figure(samples[i], samples[0]))
			}
			return values
		}
		f := Figures{Name: contenders[i].name, Runs: len(rounds)}
		f.Value = spreadOf(of(func(a, _ sample) float64 { return milliseconds(a.wall) }))
		f.CPU = quantile(of(func(a, _ sample) float64 { return milliseconds(a.cpu) }), 0.5)
		if i > 0 {
			f.Ratio = quantile(of(func(a, podctl sample) float64 {
				return float64(podctl.wall) / float64(a.wall)
			}), 0.5)
		}
		r.Contenders = append(r.Contenders, f)
	}
	r.Target.measure(r.Contenders)
	return &r
}

// measure takes the measured value from the figures of all contenders. The first is podctl.
func (t *Target) measure(contenders []Figures) {
	switch podctl := contenders[0]; {
	case t.Unit == ofOneProcessor:
		t.Measured = podctl.CPU / podctl.Value.Median
	case t.Against == "":
		t.Measured = podctl.Value.Median
	}
	for i := range contenders {
		if contenders[i].Name == t.Against {
			t.Measured = contenders[i].Ratio
		}
	}
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

// processorTime returns the processor time of a running process so far, with that of its threads that have ended. It
// returns zero if the process has ended.
func processorTime(pid int) time.Duration {
	const scheduled = 2 // The clock of the scheduler: CPUCLOCK_SCHED of the kernel, which libc hides.
	var at unix.Timespec
	unix.ClockGettime(int32(^pid)<<3|scheduled, &at) //nolint:errcheck // it stays zero then
	return time.Duration(at.Nano())
}

// field returns the value of "name : value" in a file of /proc.
func field(path, name string) string {
	text, _ := os.ReadFile(path) // A process may have ended.
	for line := range strings.Lines(string(text)) {
		if key, value, found := strings.Cut(line, ":"); found && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// mebibytes returns a field in KiB of a file of /proc as MiB. It returns zero if the file no longer exists.
func mebibytes(path, name string) float64 {
	var kib float64
	fmt.Sscan(field(path, name), &kib) //nolint:errcheck // it stays zero then
	return kib / (1 << 10)
}
