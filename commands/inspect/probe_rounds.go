package inspect

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/podctl/podctl/commands/exit"
	"github.com/podctl/podctl/commands/selection"
	"github.com/podctl/podctl/commands/session"
	"github.com/podctl/podctl/commands/terminal"
	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime"
	"github.com/podctl/podctl/runtime/cri"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/probe"
)

// prober runs the probes of several pods: once, until they are decided, or until it is interrupted.
type prober struct {
	sess   *session.Session
	o      *probeOptions
	engine *runtime.Engine
	pods   []*podspec.Desired
	// memories carry the counts of each pod from one round to the next, also for pods without a checkpoint.
	memories map[types.UID]probe.Memory
	// unknown has reports for the probes of pods that the last round could not observe.
	unknown []probe.Report
	// answered is set after the first successful round. From then on, a runtime that does not answer may be restarting.
	answered bool
}

// probeTick is the time between two rounds. A round runs the probes that are due.
const probeTick = 200 * time.Millisecond

// once runs every probe now.
func (p *prober) once(ctx context.Context) error {
	reports, err := p.round(ctx, probe.Options{NoRecord: p.o.noRecord})
	if err != nil && len(reports)+len(p.unknown) == 0 || !cri.IsAnswer(err) && len(reports) == 0 {
		return err
	}
	if showErr := p.show(ctx, slices.Concat(reports, p.unknown)); showErr != nil || err != nil {
		return errors.Join(showErr, err)
	}
	return exit.With(probeCode(reports, (*probe.Report).Verdict))
}

// decide repeats the probes until each is decided, and returns the exit code for the results.
func (p *prober) decide(ctx context.Context) error {
	var last []probe.Report
	var unknown error
	for {
		reports, err := p.round(ctx, probe.Options{NoRecord: p.o.noRecord, Due: true})
		if unknown = err; ctx.Err() == nil && endsAll(reports, err) {
			return err
		}
		if ctx.Err() == nil {
			last = merged(last, reports)
		}
		undecided := slices.ContainsFunc(last, func(r probe.Report) bool {
			return !r.Decided() && !blockedByStartup(last, &r)
		})
		if !undecided && ctx.Err() == nil {
			break
		}
		if !terminal.Sleep(ctx, probeTick) {
			break
		}
	}
	if errors.Is(context.Cause(ctx), context.Canceled) {
		return context.Cause(ctx)
	}
	if last == nil && ctx.Err() != nil {
		return exit.With(exit.NotYet)
	}
	if ctx.Err() != nil {
		unknown = nil // The exit code shows the timeout.
	}
	if err := p.show(ctx, last); err != nil || unknown != nil {
		return errors.Join(err, unknown)
	}
	return exit.With(probeCode(last, decided))
}

// decided returns the result of a probe, or ProbeUnknown if it is not decided yet.
func decided(r *probe.Report) model.ProbeResult {
	if !r.Decided() {
		return model.ProbeUnknown
	}
	return r.Record.Result
}

// endsAll reports whether another round is useless: no probe could run, or the results cannot be recorded.
func endsAll(reports []probe.Report, err error) bool {
	unrecorded := (*probe.UnrecordedError)(nil)
	return err != nil && (len(reports) == 0 || errors.As(err, &unrecorded))
}

// blockedByStartup reports whether a probe waits for the startup probe of its container, which has failed.
func blockedByStartup(reports []probe.Report, r *probe.Report) bool {
	return slices.ContainsFunc(reports, func(other probe.Report) bool {
		return other.Pod == r.Pod && other.Container == r.Container && other.Type == model.Startup &&
			other.Decided() && other.Record.Result == model.ProbeFailure
	})
}

// watch prints the table after each round in which a probe ran, until it is interrupted.
func (p *prober) watch(ctx context.Context) error {
	var last []probe.Report
	for ctx.Err() == nil {
		reports, err := p.round(ctx, probe.Options{NoRecord: p.o.noRecord, Due: true})
		if ctx.Err() == nil && endsAll(reports, err) {
			return err
		}
		if ctx.Err() == nil && err != nil {
			p.sess.IO.NoteOnce("note: %s", p.sess.ErrorText(err))
		}
		ran := slices.ContainsFunc(reports, func(r probe.Report) bool { return r.Ran })
		if last = merged(last, reports); ran || len(last) == 0 {
			if p.sess.IO.OutTTY && !terminal.IsDocument(p.o.output) {
				fmt.Fprint(p.sess.IO.Out, terminal.ClearScreen) //nolint:errcheck // a closed pipe ends the process
			}
			if err := p.show(ctx, last); err != nil {
				return err
			}
		}
		terminal.Sleep(ctx, probeTick)
	}
	return session.WatchEnded(ctx)
}

// show prints reports. It works even if the context has ended.
func (p *prober) show(ctx context.Context, reports []probe.Report) error {
	return showProbes(p.sess.IO, p.o, reports, verdictsOf(p.sess.AgentPods(context.WithoutCancel(ctx))))
}

// round runs the probes of every pod. A pod that cannot be observed does not stop the others. With an error it returns
// the reports of the others.
func (p *prober) round(ctx context.Context, opts probe.Options) ([]probe.Report, error) {
	opts.Container, opts.Type = p.o.container, model.ProbeType(p.o.kind)
	found, outcomes := selection.All(p.pods, func(d *podspec.Desired) ([]probe.Report, error) {
		return p.probe(ctx, d, opts)
	})
	p.unknown = nil
	for i, err := range outcomes {
		if err != nil && len(found[i]) == 0 {
			p.unknown = append(p.unknown, probe.Unobserved(p.pods[i], opts, "not known: "+p.sess.ErrorText(err))...)
		}
	}
	err := selection.Outcome(ctx, outcomes)
	p.answered = p.answered || err == nil
	return slices.Concat(found...), err
}

// probe runs the probes of one pod. After the first successful round, it waits for a runtime that does not answer.
func (p *prober) probe(ctx context.Context, d *podspec.Desired, opts probe.Options) (found []probe.Report, err error) {
	if opts.Due {
		opts.Memory = p.memories[d.Pod.UID]
	}
	once := func() error {
		found, err = p.engine.Prober.Probe(ctx, d, opts)
		return err
	}
	if p.answered {
		return found, p.engine.Client.WithRetries(ctx, once)
	}
	return found, once()
}

// merged returns the reports of now. For a probe that did not run, it takes the last result of the same container.
func merged(last, now []probe.Report) []probe.Report {
	for i := range now {
		j := slices.IndexFunc(last, func(r probe.Report) bool {
			return r.Pod == now[i].Pod && r.Container == now[i].Container && r.Type == now[i].Type
		})
		if j >= 0 && !now[i].Ran && last[j].ContainerID == now[i].ContainerID {
			now[i].Ran, now[i].Result, now[i].Counted = last[j].Ran, last[j].Result, last[j].Counted
		}
	}
	return now
}
