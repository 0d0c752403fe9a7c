package commands

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/probe"
)

// prober asks the probes of several pods: once, until they are decided, or for
// ever.
type prober struct {
	g      *globals
	o      *probeOptions
	engine *runtime.Engine
	pods   []*podspec.Desired
	// memory carries the counts from one round to the next, also for pods of which
	// podctl keeps none.
	memory probe.Memory
	// answered tells that there was a round: a runtime that is silent after it may be
	// restarted.
	answered bool
}

// probeTick is how often a round asks what is due.
const probeTick = 200 * time.Millisecond

// once asks every probe now.
func (p *prober) once(ctx context.Context) error {
	reports, err := p.round(ctx, probe.Options{NoRecord: p.o.noRecord})
	if unrecorded := (*probe.UnrecordedError)(nil); err != nil && len(reports) == 0 && !errors.As(err, &unrecorded) {
		return err
	}
	if showErr := p.g.showProbes(p.o, reports); showErr != nil || err != nil {
		return errors.Join(showErr, err)
	}
	return withCode(probeCode(reports))
}

// decide asks again until every probe is decided, and exits by what was decided.
func (p *prober) decide(ctx context.Context) error {
	var last []probe.Report
	var unknown error
	for {
		reports, err := p.round(ctx, p.due())
		if unknown = err; ctx.Err() == nil && endsAll(reports, err) {
			return err
		}
		if ctx.Err() == nil {
			last = merged(last, reports)
		}
		undecided := slices.ContainsFunc(last, func(r probe.Report) bool { return !r.Decided() && !neverAsked(last, &r) })
		if !undecided && ctx.Err() == nil {
			break
		}
		if !sleep(ctx, probeTick) {
			break
		}
	}
	if errors.Is(context.Cause(ctx), context.Canceled) {
		return context.Cause(ctx)
	}
	if last == nil && ctx.Err() != nil {
		return withCode(exitNotYet)
	}
	if ctx.Err() != nil {
		unknown = nil // It is the end of the time, which the code tells.
	}
	if err := p.g.showProbes(p.o, last); err != nil || unknown != nil {
		return errors.Join(err, unknown)
	}
	return withCode(decidedCode(last))
}

// endsAll reports whether no further round is of use: nothing could be asked, or nothing can
// be remembered.
func endsAll(reports []probe.Report, err error) bool {
	unrecorded := (*probe.UnrecordedError)(nil)
	return err != nil && (len(reports) == 0 || errors.As(err, &unrecorded))
}

// neverAsked tells that a probe waits for the startup probe of its container, which has failed.
func neverAsked(reports []probe.Report, r *probe.Report) bool {
	return slices.ContainsFunc(reports, func(other probe.Report) bool {
		return other.Pod == r.Pod && other.Container == r.Container && other.Type == model.Startup &&
			other.Decided() && other.Record.Result == model.ProbeFailure
	})
}

func (p *prober) due() probe.Options {
	return probe.Options{NoRecord: p.o.noRecord, Due: true, Memory: p.memory}
}

// watch shows the table anew whenever something was asked, until it is
// interrupted.
func (p *prober) watch(ctx context.Context) error {
	var last []probe.Report
	for ctx.Err() == nil {
		reports, err := p.round(ctx, p.due())
		if ctx.Err() == nil && endsAll(reports, err) {
			return err
		}
		if ctx.Err() == nil && err != nil {
			p.g.noteOnce("note: %s", p.g.errorText(err))
		}
		asked := slices.ContainsFunc(reports, func(r probe.Report) bool { return r.Asked })
		if last = merged(last, reports); asked || len(last) == 0 {
			if err := p.redraw(last); err != nil {
				return err
			}
		}
		sleep(ctx, probeTick)
	}
	return watchEnded(ctx)
}

func (p *prober) redraw(reports []probe.Report) error {
	if p.g.env.OutTTY && !isDocument(p.o.output) {
		fmt.Fprint(p.g.env.Out, clearScreen) //nolint:errcheck // a closed pipe ends the process
	}
	return p.g.showProbes(p.o, reports)
}

// round asks the probes of every pod. One that cannot be observed keeps no other from being
// asked; with its error there are the reports of the others.
func (p *prober) round(ctx context.Context, opts probe.Options) ([]probe.Report, error) {
	opts.Container, opts.Type = p.o.container, model.ProbeType(p.o.kind)
	var reports []probe.Report
	err := inTurn(ctx, p.pods, func(d *podspec.Desired) error {
		var found []probe.Report
		ask := func() (err error) {
			found, err = p.engine.Prober.Probe(ctx, d, opts)
			return err
		}
		var err error
		if p.answered {
			err = p.engine.Client.WithRetries(ctx, ask)
		} else {
			err = ask()
		}
		reports = append(reports, found...)
		return err
	})
	p.answered = p.answered || err == nil
	return reports, err
}

// merged keeps of each probe the last report in which it was asked.
func merged(last, now []probe.Report) []probe.Report {
	for i := range now {
		j := slices.IndexFunc(last, func(r probe.Report) bool {
			return r.Pod == now[i].Pod && r.Container == now[i].Container && r.Type == now[i].Type
		})
		if j >= 0 && !now[i].Asked && last[j].ContainerID == now[i].ContainerID {
			now[i].Asked, now[i].Result, now[i].Counted = last[j].Asked, last[j].Result, last[j].Counted
		}
	}
	return now
}

// decidedCode is 4 when a probe was decided to have failed, 3 when one was not
// decided in time, else 0.
func decidedCode(reports []probe.Report) int {
	code := exitOK
	for i := range reports {
		switch r := &reports[i]; {
		case !r.Decided():
			code = exitNotYet
		case r.Record.Result == model.ProbeFailure:
			return exitProbeFailed
		}
	}
	return code
}
