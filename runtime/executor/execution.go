package executor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/cgroup"
	"github.com/podctl/podctl/runtime/cri"
	"github.com/podctl/podctl/runtime/criconfig"
	"github.com/podctl/podctl/runtime/events"
	"github.com/podctl/podctl/runtime/gc"
	"github.com/podctl/podctl/runtime/images"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/observe"
	"github.com/podctl/podctl/runtime/plan"
	"github.com/podctl/podctl/runtime/podstatus"
	"github.com/podctl/podctl/runtime/probe"
	"github.com/podctl/podctl/runtime/snapshot"
	"github.com/podctl/podctl/runtime/state"
	"github.com/podctl/podctl/runtime/state/podlogs"
	"github.com/podctl/podctl/runtime/volume"
)

// subject is the pod of a plan: as desired, and as observed when the plan was made. It has the state that all parts of
// the execution share. No step changes the snapshot or the plan's input, because the caller keeps them.
type subject struct {
	*Executor
	opts     Options
	plan     *plan.Plan
	desired  *podspec.Desired
	snapshot *snapshot.Pod
	observed *model.Observed
	// applied is the manifest applied before this pass; nil if it is unknown.
	applied *podspec.Desired
	// cluster is the pod's state in the API, as in the input of the plan.
	cluster *podstatus.Cluster
	pod     state.Pod

	outputs    *outputs
	report     *reporter
	schedule   *scheduler
	checkpoint *checkpointer
}

// node returns the facts of the machine as the pod sees them.
func (x *subject) node() criconfig.Node { return x.host.NodeOf(cmp.Or(x.desired, x.applied)) }

// logs returns the log files of the pod.
func (x *subject) logs() podlogs.Logs { return x.pod.Logs(x.plan.Pod.Namespace, x.plan.Pod.Name) }

// volumes returns the context for volumes of a manifest of the pod.
func (x *subject) volumes(desired *podspec.Desired) volume.Context {
	return volume.Context{Pod: x.pod, Desired: desired, Allocatable: x.node().Allocatable}
}

// manifest returns the manifest whose hooks run: the desired one, or on deletion the one applied last.
func (x *subject) manifest() *v1.Pod {
	switch {
	case x.desired != nil:
		return x.desired.Pod
	case x.applied != nil:
		return x.applied.Pod
	}
	return nil
}

// execution executes one plan, step by step.
type execution struct {
	*subject
	prepare *preparer
	start   *starter
	stop    *stopper
	remove  *remover
	memory  *memoryCheck
}

// Executor executes plans. It makes no decisions: if the actual state differs from the observed one, the pass ends, and
// the caller makes another plan.
type Executor struct {
	client  *cri.Client
	layout  state.Layout
	cgroups cgroup.Groups
	now     func() time.Time
	host    *observe.Host
	garbage *gc.Collector
	rotator *gc.Rotator
	puller  *images.Puller
	pulled  state.PulledImages
	pulls   *state.PullRecords
	// Devices gives devices of plugins to containers; nil for none.
	Devices model.DeviceManager
	// Held is notified of checkpoints that a pass holds, so that probe results are recorded meanwhile; nil if the
	// caller does not probe.
	Held *probe.Held
	// Recorded is notified of the events of passes. It may be nil.
	Recorded events.Listener
}

// New returns an Executor.
func New(w observe.World, host *observe.Host, garbage *gc.Collector) *Executor {
	return &Executor{
		client:  w.Client,
		layout:  w.Layout,
		cgroups: w.Cgroups,
		now:     w.Now,
		host:    host,
		garbage: garbage,
		rotator: gc.NewRotator(w),
		puller:  images.NewPuller(w.Pulls),
		pulled:  w.Layout.PulledImages(),
		pulls:   state.NewPullRecords(w.Layout),
		Devices: w.Devices,
	}
}

// Run executes a plan that was made from an input and a snapshot. The caller holds the pod's lock.
func (e *Executor) Run(
	ctx context.Context, in *plan.Input, p *plan.Plan, s *snapshot.Pod, opts Options,
) (*Outcome, error) {
	return e.newExecution(in, p, s, opts).run(ctx)
}

func (e *Executor) newExecution(in *plan.Input, p *plan.Plan, s *snapshot.Pod, opts Options) *execution {
	sub := &subject{
		Executor: e,
		opts:     opts,
		plan:     p,
		desired:  in.Desired,
		snapshot: s,
		observed: &in.Observed,
		applied:  s.Checkpoint.Applied,
		cluster:  in.Cluster,
		pod:      e.layout.Pod(p.Pod.UID),
		outputs:  newOutputs(p, &in.Observed),
	}
	sub.report = &reporter{
		pod:      p.Pod,
		plan:     p,
		manifest: sub.manifest(),
		now:      e.now,
		redactor: s.Checkpoint.Redactor(in.Desired),
		notify:   opts.Report,
		warnings: opts.Warnings,
	}
	sub.report.recorder.Pod, sub.report.recorder.Listen = cmp.Or(sub.desired, sub.applied), e.Recorded
	recordDrift(&sub.report.recorder, p)
	sub.schedule = newScheduler(p, sub.report)
	sub.checkpoint = &checkpointer{subject: sub, record: s.Checkpoint.Clone()}
	stop := &stopper{subject: sub, hooks: &hooks{sub}, slots: make(semaphore, maxConcurrent)}
	x := &execution{
		subject: sub,
		prepare: &preparer{sub},
		start:   &starter{sub, stop},
		stop:    stop,
		remove:  &remover{sub},
		memory:  &memoryCheck{subject: sub},
	}
	sub.schedule.act, sub.schedule.create, sub.schedule.drop = x.do, x.start.createEarly, x.start.dropCreated
	return x
}

// run executes the plan and records its results.
func (x *execution) run(ctx context.Context) (*Outcome, error) {
	if x.opts.Planned != nil {
		x.opts.Planned(x.plan)
	}
	if err := x.permitted(); err != nil {
		return nil, err
	}
	if x.opts.Debug == nil {
		if err := x.checkpoint.begin(); err != nil {
			return nil, err
		}
	}
	if x.opts.Begun != nil {
		x.opts.Begun()
	}
	x.prepare.warnOfPullSecrets()
	x.perform(ctx)
	// The error is ignored because the pass succeeded. The next pass tries again, and the agent reports the error.
	_ = x.pod.TrimFiles()
	return x.end(ctx)
}

// perform executes the steps. Meanwhile it records probe results.
func (x *execution) perform(ctx context.Context) {
	if x.Held != nil && x.opts.Debug == nil && !x.plan.Unapplied() {
		release := x.Held.Hold(x.plan.Pod.UID, x.checkpoint.take)
		defer release()
		defer x.checkpoint.close()
	}
	x.schedule.run(ctx)
}

// permitted returns a *LiveKubeletError if a kubelet would kill what the plan starts. It runs this late because the
// search for a kubelet runs in parallel to the observation of the pod and takes as long.
func (x *execution) permitted() error {
	if x.desired == nil || x.plan.End != nil || len(x.plan.Steps) == 0 || x.opts.AllowKubelet {
		return nil
	}
	return x.host.CheckKubelet()
}

// do executes one step. No other code changes the system for a plan.
func (x *execution) do(ctx context.Context, s *plan.Step) (string, error) {
	switch s.Kind {
	case plan.CreateCgroup:
		return "", x.prepare.applyCgroup()
	case plan.UpdatePod, plan.UpdateContainer:
		return "", x.resize(ctx, s)
	case plan.RemoveCgroup:
		return "", x.remove.removeCgroup(ctx)
	case plan.PrepareVolume, plan.UpdateVolume:
		return "", model.WithReason(model.FailedMount, volume.Prepare(ctx, x.volumes(x.desired), s.Volume))
	case plan.RemoveVolume:
		return "", x.remove.removeVolumes(ctx, s)
	case plan.PullImage:
		return x.prepare.pullImage(ctx, s)
	case plan.AllocateDevices:
		return "", x.start.allocateDevices(ctx, s)
	case plan.CheckContainer:
		return "", x.start.checkContainer(s)
	case plan.RunSandbox:
		return x.prepare.runSandbox(ctx, s)
	case plan.StopSandbox:
		own, end := lasting(ctx)
		defer end()
		return "", model.WithReason(model.KillPodSandboxError, x.client.StopSandbox(own, s.SandboxID))
	case plan.RemoveSandbox:
		return "", x.client.RemoveSandbox(context.WithoutCancel(ctx), s.SandboxID)
	case plan.StartContainer:
		return x.start.startContainer(ctx, s)
	case plan.StopContainer:
		return x.stop.stopContainer(ctx, s)
	case plan.RemoveContainer:
		return "", x.remove.removeContainer(ctx, s)
	case plan.ArchiveLogs:
		return "", x.remove.archiveLogs()
	case plan.RotateLog:
		run := &gc.RunLog{Pod: x.plan.Pod, Container: s.Container, Attempt: s.Attempt, ContainerID: s.ContainerID}
		return "", x.rotator.Rotate(ctx, run)
	}
	return "", fmt.Errorf("unknown kind of step %q", s.Kind)
}

// lasting returns a context that a change of the desired state does not cancel: the next pass would have to make the
// same call again.
func lasting(ctx context.Context) (own context.Context, end func()) {
	own, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		if cause := context.Cause(ctx); !errors.Is(cause, ErrOutdated) {
			cancel(cause)
		}
	})
	return own, func() { stop(); cancel(nil) }
}

func (x *execution) end(ctx context.Context) (*Outcome, error) {
	r := &x.schedule.results
	outcome := &Outcome{Plan: x.plan, Failed: slices.Concat(r.failed, r.refused), Skipped: r.skipped}
	if x.opts.Debug == nil {
		x.checkpoint.endResize(r)
	}
	written := make(chan struct{})
	go func() {
		defer close(written)
		x.report.write(x.pod)
	}()
	var err error
	if x.opts.Debug == nil {
		err = x.checkpoint.remember(r)
	}
	<-written
	outcome.Unchanged = len(x.plan.Steps) == 0 && !x.checkpoint.written
	switch {
	case err != nil:
		return outcome, err
	case r.changed != nil:
		return outcome, fmt.Errorf("pod %s: %w", x.plan.Pod, x.report.redactor.Error(r.changed))
	case ctx.Err() != nil:
		return outcome, x.cutOff(context.Cause(ctx))
	}
	return outcome, nil
}

// cutOff returns an error that names the steps that the interruption ended.
func (x *execution) cutOff(cause error) error {
	var during []string
	for i := range x.schedule.failed {
		if failure := &x.schedule.failed[i]; errors.Is(failure.Err, cause) {
			during = append(during, strings.TrimSpace(failure.Step.Kind.Verb()+" "+failure.Step.Object()))
		}
	}
	if len(during) == 0 {
		return fmt.Errorf("pod %s: %w", x.plan.Pod, cause)
	}
	return fmt.Errorf("pod %s: %w during: %s", x.plan.Pod, cause, strings.Join(during, ", "))
}
