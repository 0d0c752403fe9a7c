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

// contender is one way to do a workload's work.
type contender struct {
	name string
	// before and after surround each run, and are not timed; they may be nil.
	before, after func(context.Context) error
	run           func(context.Context) (sample, error)
}

// workload is some work that several contenders do in turn.
type workload struct {
	name, what string
	contenders []contender
	// rounds is how often each contender runs, when it is not the usual number.
	rounds int
	// begin and end surround all rounds; they may be nil.
	begin, end func(context.Context) error
	// limits are what the first contender may take, by the name of the yardstick; a
	// yardstick that is no contender is a duration in milliseconds.
	limits []limit
	// trips counts the calls to the runtime of one run of podctl; it may be nil.
	trips func(context.Context) (map[string]int, error)
}

// measure runs the contenders in turn, A B C A B C …, so that a machine whose speed
// drifts is as slow for one as for another. The first round is not counted; it is the one
// in which the memory is looked at.
func (w *workload) measure(ctx context.Context, rounds int) (result *Result, err error) {
	if w.rounds > 0 {
		rounds = w.rounds
	}
	defer func() { err = errors.Join(err, call(context.WithoutCancel(ctx), w.end)) }()
	if err = call(ctx, w.begin); err != nil {
		return nil, err
	}
	first, err := w.round(withMemory(ctx))
	if err != nil {
		return nil, err
	}
	counted := make([][]sample, rounds)
	for i := range counted {
		if counted[i], err = w.round(ctx); err != nil {
			return nil, err
		}
	}
	result = w.summarize(first, counted)
	if w.trips != nil {
		if result.RoundTrips, err = w.trips(ctx); err != nil {
			return nil, err
		}
	}
	return result, nil
}

// round lets each contender run once.
func (w *workload) round(ctx context.Context) ([]sample, error) {
	samples := make([]sample, len(w.contenders))
	for i := range w.contenders {
		var err error
		if samples[i], err = w.contenders[i].once(ctx); err != nil {
			return nil, fmt.Errorf("%s: %w", w.contenders[i].name, err)
		}
	}
	return samples, nil
}

func call(ctx context.Context, f func(context.Context) error) error {
	if f == nil {
		return nil
	}
	return f(ctx)
}

// settle is how long the kernel has before each run to take down what the run before
// left: namespaces of networks and cgroups go some time after the calls that removed them,
// and keep new ones waiting.
const settle = 100 * time.Millisecond

func (c *contender) once(ctx context.Context) (sample, error) {
	if err := call(ctx, c.before); err != nil {
		return sample{}, err
	}
	time.Sleep(settle)
	s, err := c.run(ctx)
	return s, errors.Join(err, call(context.WithoutCancel(ctx), c.after))
}

// summarize turns the samples of the counted rounds into figures: medians, spread, and
// the ratios of podctl to the others, round by round. The first round has the memory.
func (w *workload) summarize(first []sample, rounds [][]sample) *Result {
	r := &Result{Name: w.name, What: w.what}
	for i := range w.contenders {
		of := func(figure func(a, podctl sample) float64) []float64 {
			values := make([]float64, 0, len(rounds))
			for _, samples := range rounds {
				values = append(values, figure(samples[i], samples[0]))
			}
			return values
		}
		f := Figures{Name: w.contenders[i].name, Runs: len(rounds), MaxRSS: float64(first[i].rss) / (1 << 20)}
		f.Wall = spreadOf(of(func(a, _ sample) float64 { return milliseconds(a.wall) }))
		f.CPU = median(of(func(a, _ sample) float64 { return milliseconds(a.cpu) }))
		if i > 0 {
			f.Ratio = median(of(func(a, podctl sample) float64 { return float64(podctl.wall) / float64(a.wall) }))
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
	t := Target{}
	switch {
	case l.rss > 0:
		t.Text, t.Limit, t.Measured = "largest memory in MiB", l.rss, podctl.MaxRSS
	case l.cpuShare > 0:
		t.Text, t.Limit, t.Measured = "of one processor", l.cpuShare, podctl.CPU/podctl.Wall.Median
	case l.against == "":
		t.Text, t.Limit, t.Measured = "milliseconds", l.ms, podctl.Wall.Median
	default:
		t.Text, t.Limit = "times "+l.against, l.factor
		for i := range r.Contenders {
			if r.Contenders[i].Name == l.against {
				t.Measured = r.Contenders[i].Ratio
			}
		}
	}
	t.Met = t.Measured > 0 && t.Measured <= t.Limit
	return t
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func median(values []float64) float64 { return quantile(values, 0.5) }

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
	return Spread{Median: median(values), Low: quantile(values, 0.25), High: quantile(values, 0.75)}
}

// timed runs a command and is told by the kernel what it used.
func timed(ctx context.Context, name string, args ...string) (sample, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	// To a file: a reader would work while the process does.
	out, err := os.CreateTemp("", "podctl-bench-output-")
	if err != nil {
		return sample{}, err
	}
	defer func() { out.Close(); os.Remove(out.Name()) }() //nolint:errcheck // nobody needs it any more
	cmd.Stdout, cmd.Stderr = out, out
	begun := time.Now()
	if err = cmd.Start(); err != nil {
		return sample{}, err
	}
	peak := func() int64 { return 0 }
	if looksAtMemory(ctx) {
		peak = watchMemory(cmd.Process.Pid)
	}
	err = cmd.Wait()
	s := sample{wall: time.Since(begun), rss: peak()}
	if err != nil {
		text, _ := os.ReadFile(out.Name())
		return s, fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, text)
	}
	s.cpu = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	return s, nil
}

type memoryKey struct{}

// withMemory lets timed look at the memory of its processes. That keeps a processor busy
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
		var peak int64
		for {
			select {
			case <-done:
				result <- peak
				return
			case <-time.After(memoryPause):
				var kib int64
				fmt.Sscanf(field(fmt.Sprintf("/proc/%d/status", pid), "VmHWM"), "%d", &kib) //nolint:errcheck // it has ended
				peak = max(peak, kib<<10)
			}
		}
	}()
	return func() int64 { close(done); return <-result }
}

// inTurn times several commands one after the other as one run.
func inTurn(runs ...func() (sample, error)) (sample, error) {
	var sum sample
	for _, run := range runs {
		s, err := run()
		if err != nil {
			return sum, err
		}
		sum.wall += s.wall
		sum.cpu += s.cpu
		sum.rss = max(sum.rss, s.rss)
	}
	return sum, nil
}

// clocked times calls that the bench makes itself.
func clocked(work func() error) (sample, error) {
	begun := time.Now()
	err := work()
	return sample{wall: time.Since(begun)}, err
}

// byCount lists names, the most frequent first.
func byCount(counts map[string]int) []string {
	names := make([]string, 0, len(counts))
	for name := range counts {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})
	return names
}
