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

// prober runs the probes of several pods: once, until they are decided, or until it is
// interrupted.
type prober struct {
	sess   *session.Session
	o      *probeOptions
	engine *runtime.Engine
	pods   []*podspec.Desired
	// memories carry the counts of each pod from one round to the next, also for pods of which
	// podctl keeps none.
	memories map[types.UID]probe.Memory
	// unknown are the probes of pods that the last round could not ask about.
	unknown []probe.Report
	// answered reports whether there was a round: a runtime that does not answer after it
	// may be restarting.
	answered bool
}

// probeTick is how often a round runs the probes that are due.
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

// decide repeats the probes until every one is decided, and exits by the results.
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
		undecided := slices.ContainsFunc(last, func(r probe.Report) bool { return !r.Decided() && !neverAsked(last, &r) })
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
		unknown = nil // It is the end of the time, which the code tells.
	}
	if err := p.show(ctx, last); err != nil || unknown != nil {
		return errors.Join(err, unknown)
	}
	return exit.With(probeCode(last, decided))
}

// decided is the result of a probe; unknown if it was not decided in time.
func decided(r *probe.Report) model.ProbeResult {
	if !r.Decided() {
		return model.ProbeUnknown
	}
	return r.Record.Result
}

// endsAll reports whether no further round is of use: nothing could be asked, or nothing can
// be remembered.
func endsAll(reports []probe.Report, err error) bool {
	unrecorded := (*probe.UnrecordedError)(nil)
	return err != nil && (len(reports) == 0 || errors.As(err, &unrecorded))
}

// neverAsked reports whether a probe waits for the startup probe of its container, which has failed.
func neverAsked(reports []probe.Report, r *probe.Report) bool {
	return slices.ContainsFunc(reports, func(other probe.Report) bool {
		return other.Pod == r.Pod && other.Container == r.Container && other.Type == model.Startup &&
			other.Decided() && other.Record.Result == model.ProbeFailure
	})
}

// watch shows the table again whenever a probe was run, until it is interrupted.
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
		asked := slices.ContainsFunc(reports, func(r probe.Report) bool { return r.Asked })
		if last = merged(last, reports); asked || len(last) == 0 {
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

// show prints reports, also after the end of the time.
func (p *prober) show(ctx context.Context, reports []probe.Report) error {
	return showProbes(p.sess.IO, p.o, reports, verdictsOf(p.sess.AgentPods(context.WithoutCancel(ctx))))
}

// round runs the probes of every pod. One that cannot be observed stops no other; with its
// error there are the reports of the others.
func (p *prober) round(ctx context.Context, opts probe.Options) ([]probe.Report, error) {
	opts.Container, opts.Type = p.o.container, model.ProbeType(p.o.kind)
	found, outcomes := selection.All(p.pods, func(d *podspec.Desired) ([]probe.Report, error) { return p.ask(ctx, d, opts) })
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

// ask runs the probes of one pod. Once the runtime has answered, it is waited for.
func (p *prober) ask(ctx context.Context, d *podspec.Desired, opts probe.Options) (found []probe.Report, err error) {
	if opts.Due {
		opts.Memory = p.memories[d.Pod.UID]
	}
	ask := func() error {
		found, err = p.engine.Prober.Probe(ctx, d, opts)
		return err
	}
	if p.answered {
		return found, p.engine.Client.WithRetries(ctx, ask)
	}
	return found, ask()
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
