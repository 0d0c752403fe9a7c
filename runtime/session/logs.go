package session

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/cri"
	"github.com/podctl/podctl/runtime/logfile"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/plan"
	"github.com/podctl/podctl/runtime/podstatus"
	"github.com/podctl/podctl/runtime/sleep"
)

// LogOptions select the logs of a pod to show.
type LogOptions struct {
	// Options apply to all runs. With Follow, the next run is shown as well.
	logfile.Options
	// Container is the container's name. If empty, all containers with a log are shown.
	Container string
	// Once reports whether the container runs only once: following ends with that run.
	Once bool
	// Previous shows the run before the current one.
	Previous bool
	// Prefix returns the text before each line of a container. If nil, there is none.
	Prefix func(container string) string
}

// Logs writes the logs of a pod's containers. With Follow it continues over restarts until the context ends or the pod
// has finished.
func (x *Sessions) Logs(
	ctx context.Context, desired *podspec.Desired, opts LogOptions, stdout, stderr io.Writer,
) error {
	refs, err := logged(desired, opts.Container)
	if err != nil {
		return err
	}
	out := &logfile.Shared{}
	group, ctx := errgroup.WithContext(ctx)
	if !opts.Follow {
		group.SetLimit(1)
	}
	for _, ref := range refs {
		prefix := ""
		if opts.Prefix != nil {
			prefix = opts.Prefix(ref.Name)
		}
		f := &logFollower{
			e: x, desired: desired, name: ref.Name, opts: opts,
			stdout: out.Lines(stdout, prefix), stderr: out.Lines(stderr, prefix),
		}
		group.Go(func() error { return f.run(ctx) })
	}
	return group.Wait()
}

func logged(desired *podspec.Desired, name string) ([]podspec.ContainerRef, error) {
	if name == "" {
		return podspec.Containers(desired.Pod), nil
	}
	if ref, ok := podspec.FindContainer(desired.Pod, name); ok {
		return []podspec.ContainerRef{ref}, nil
	}
	var names []string
	for _, ref := range podspec.Containers(desired.Pod) {
		names = append(names, ref.Name)
	}
	return nil, fmt.Errorf("pod %s has no container %q; it has %v", model.RefOf(desired.Pod), name, names)
}

// logFollower shows the logs of one container.
type logFollower struct {
	e              *Sessions
	desired        *podspec.Desired
	name           string
	opts           LogOptions
	stdout, stderr *logfile.Lines
	// passed holds the IDs of the shown runs and of those older than the first shown one. It is nil before the first.
	passed map[string]bool
}

// run shows the selected run and, with Follow, all later runs.
func (f *logFollower) run(ctx context.Context) error {
	answered := false
	for {
		c, running, err := f.next(ctx)
		answered = answered || err == nil
		if c != nil {
			err = f.show(ctx, c)
		}
		if err != nil && answered && f.opts.Follow && ctx.Err() != nil {
			return nil //nolint:nilerr // the user ended it during a call to the runtime
		}
		if err != nil {
			return err
		}
		if c != nil {
			f.opts.Tail = nil
			continue
		}
		if !f.opts.Follow || f.opts.Previous || (!running && (f.opts.Once || f.finished(ctx))) {
			return f.explain(ctx)
		}
		if err := sleep.For(ctx, followPause); err != nil {
			return nil //nolint:nilerr // the user ended it
		}
	}
}

// followPause is how often a follower checks for the next run of a container.
const followPause = 300 * time.Millisecond

// next returns the run to show now: first the newest or the previous one, then the one after the last shown. It reports
// whether the newest run is still running.
func (f *logFollower) next(ctx context.Context) (c *runtimeapi.Container, running bool, err error) {
	runs, err := f.runs(ctx)
	if err != nil {
		return nil, false, err
	}
	running = len(runs) > 0 && runs[len(runs)-1].GetState() == runtimeapi.ContainerState_CONTAINER_RUNNING
	if f.passed != nil {
		return f.after(runs), running, nil
	}
	index := len(runs) - 1
	if f.opts.Previous && !f.awaitsRestart(ctx) {
		index--
	}
	if index >= 0 {
		f.pass(runs[:index+1])
		return runs[index], running, nil
	}
	if f.opts.Previous && f.opts.Container != "" {
		return nil, false, fmt.Errorf("container %s of pod %s has no previous run whose log is kept",
			f.name, model.RefOf(f.desired.Pod))
	}
	return nil, running, nil
}

// explain returns the reason why a named container has no log. It returns nil if a log was shown.
func (f *logFollower) explain(ctx context.Context) error {
	if f.passed != nil || f.opts.Container == "" {
		return nil
	}
	ref := model.RefOf(f.desired.Pod)
	in, _, err := f.e.observer.Input(ctx, ref, f.desired, plan.Options{})
	if err != nil {
		return err
	}
	return fmt.Errorf("container %s of pod %s has no log: %s", f.name, ref, whyNoLog(in, f.name))
}

// whyNoLog returns the reason why a container without a record of a run has no log.
func whyNoLog(in *plan.Input, name string) string {
	status := podstatus.Of(in.State())
	if status.Reason != "" && len(in.Observed.Containers) == 0 {
		return "the pod did not run: " + model.StartError{
			Reason:  model.Reason(status.Reason),
			Message: status.Message,
		}.Line()
	}
	statuses := slices.Concat(status.InitContainerStatuses, status.ContainerStatuses, status.EphemeralContainerStatuses)
	for _, s := range statuses {
		switch {
		case s.Name != name:
		case s.State.Terminated != nil:
			return fmt.Sprintf("it has ended (%s, exit code %s), and the runtime has removed its record",
				s.State.Terminated.Reason, model.ExitText(s.State.Terminated.ExitCode))
		case model.IsOver(&status):
			return fmt.Sprintf("the pod has ended as %s before the container was started", status.Phase)
		case s.State.Waiting != nil:
			return "it has not started: " + model.StartError{
				Reason:  model.Reason(s.State.Waiting.Reason),
				Message: s.State.Waiting.Message,
			}.Line()
		}
	}
	return "the runtime has no record of a run"
}

// after returns the next run after the passed ones. It returns nil if there is none yet.
func (f *logFollower) after(runs []*runtimeapi.Container) *runtimeapi.Container {
	if f.opts.Previous {
		return nil
	}
	for i, c := range runs {
		if !f.passed[c.GetId()] {
			f.pass(runs[i : i+1])
			return c
		}
	}
	return nil
}

func (f *logFollower) pass(runs []*runtimeapi.Container) {
	if f.passed == nil {
		f.passed = map[string]bool{}
	}
	for _, c := range runs {
		f.passed[c.GetId()] = true
	}
}

// awaitsRestart reports whether the container has ended and waits for its next run. Then its last run is the previous
// one (kubectl: logs --previous).
func (f *logFollower) awaitsRestart(ctx context.Context) bool {
	in, _, err := f.e.observer.Input(ctx, model.RefOf(f.desired.Pod), f.desired, plan.Options{})
	if err != nil {
		return false
	}
	status := podstatus.Of(in.State())
	for _, s := range slices.Concat(status.InitContainerStatuses, status.ContainerStatuses) {
		if s.Name == f.name {
			return s.State.Waiting != nil
		}
	}
	return false
}

// runs returns the container's runs, the oldest first. It leaves out a run that has not started, because it has no log.
func (f *logFollower) runs(ctx context.Context) ([]*runtimeapi.Container, error) {
	var runs []*runtimeapi.Container
	err := f.e.client.WithRetries(ctx, func() (err error) {
		runs, err = f.e.observer.ListNewestFirst(ctx, model.RefOf(f.desired.Pod))
		return err
	})
	if err != nil {
		return nil, err
	}
	runs = slices.DeleteFunc(runs, func(c *runtimeapi.Container) bool {
		return c.GetMetadata().GetName() != f.name || c.GetState() == runtimeapi.ContainerState_CONTAINER_CREATED
	})
	slices.Reverse(runs)
	return runs, nil
}

// show writes the log of one run: first the rotated files, then the current one.
func (f *logFollower) show(ctx context.Context, c *runtimeapi.Container) error {
	status, err := f.e.client.ContainerStatus(ctx, &runtimeapi.ContainerStatusRequest{ContainerId: c.GetId()})
	if err != nil {
		return cri.IgnoreNotFound(err)
	}
	defer f.stdout.Flush()
	defer f.stderr.Flush()
	opts := f.opts.Options
	opts.Follow = opts.Follow && !f.opts.Previous
	log := logfile.Log{Path: status.GetStatus().GetLogPath()}
	running := func(ctx context.Context) (bool, error) { return f.e.stillRuns(ctx, c.GetId()) }
	err = log.Read(ctx, &opts, running, f.stdout, f.stderr)
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// finished reports whether the container will not run again.
func (f *logFollower) finished(ctx context.Context) bool {
	in, _, err := f.e.observer.Input(ctx, model.RefOf(f.desired.Pod), f.desired, plan.Options{})
	if gone := (*cri.UnavailableError)(nil); errors.As(err, &gone) {
		return false
	}
	if err != nil {
		return true
	}
	status := podstatus.Of(in.State())
	return status.Phase == "Succeeded" || status.Phase == "Failed" || len(in.Observed.Sandboxes) == 0
}

// stillRuns reports whether a container runs. It returns false if the container's record is gone, and true if the
// runtime does not answer.
func (x *Sessions) stillRuns(ctx context.Context, id string) (bool, error) {
	var reply *runtimeapi.ContainerStatusResponse
	err := x.client.WithRetries(ctx, func() (err error) {
		reply, err = x.client.ContainerStatus(ctx, &runtimeapi.ContainerStatusRequest{ContainerId: id})
		return err
	})
	if status.Code(err) == codes.Unavailable {
		return true, nil
	}
	return reply.GetStatus().GetState() == runtimeapi.ContainerState_CONTAINER_RUNNING, cri.IgnoreNotFound(err)
}
