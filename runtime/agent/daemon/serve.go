package daemon

import (
	"context"
	"net"
	"sync"
	"time"

	"github.com/podctl/podctl/runtime/agent"
	"github.com/podctl/podctl/runtime/agent/api"
	"github.com/podctl/podctl/runtime/sleep"
)

// serve runs the agent with its sockets, and reloads the configuration on SIGHUP.
func (d *daemon) serve(ctx context.Context, public net.Listener) error {
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	var servers sync.WaitGroup
	defer func() {
		stop()
		// The servers remove their sockets.
		servers.Wait()
	}()
	serveInParallel := func(what string, do func() error) {
		servers.Go(func() {
			if err := do(); err != nil {
				d.Log.Error(what, "error", err.Error())
			}
		})
	}
	b := backend{d.agent, d}
	serveInParallel("the socket of the agent cannot be served", func() error {
		return api.Serve(serving, d.Layout.AgentSocket(), b)
	})
	serveInParallel("the socket of the Pods API cannot be served", func() error { return d.servePods(serving) })
	serveInParallel("device plugins cannot register", func() error { return d.serveDevices(serving) })
	if public != nil {
		d.Log.Info("serving metrics", "address", public.Addr().String())
		serveInParallel("the metrics cannot be served", func() error {
			return api.ServePublic(serving, public, d.Listen.Host, b)
		})
	}
	if d.joined != nil {
		// Its end is a step of the agent's end. The process does not wait for a node whose agent is stuck.
		d.leave = d.runCluster(serving)
	}
	go b.reloadOnSignals(serving)
	go watchdog(serving, d.agent)
	go d.keepServices(serving)
	if d.shutdown().Within > 0 {
		go d.guard().Run(serving)
	}
	return d.runAgent(ctx)
}

// servePods serves the kubelet's local Pods API.
func (d *daemon) servePods(ctx context.Context) error {
	l, err := api.Listen(ctx, d.Layout.PodsSocket())
	if err != nil {
		return err
	}
	return d.agent.ServePods(ctx, l)
}

// restartWait limits how long a restart waits for passes to finish. The next agent continues a pass that is cut off.
const (
	restartWait = 2 * time.Second
	answerWait  = 100 * time.Millisecond
)

// runAgent keeps pods until the context ends, or a restart is due.
func (d *daemon) runAgent(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	ended := make(chan error, 1)
	go func() { ended <- d.agent.Run(ctx) }()
	go d.housekeeper.Run(ctx, d.agent.WritingPods)
	if d.limitsPods() {
		go newPodLimiter(d).run(ctx)
	}
	d.startEviction(ctx)
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
		return d.end(ended)
	case <-d.restart:
	}
	// Let the answer to the request go out first.
	_ = sleep.For(ctx, answerWait)
	cancel(agent.ErrHandover)
	select {
	case err := <-ended:
		if err != nil {
			d.Log.Warn("the agent ended with an error before its restart", "error", err.Error())
		}
	case <-time.After(restartWait):
	}
	return ErrRestart
}

// endLimit limits how long the running passes of a node may take at its end, and how long the loop of any agent may
// take to notice the end. With the time for the last statuses, a node ends within 2 s. A kubelet does not wait for its
// passes.
const endLimit = time.Second

// end waits until the agent has ended: running deletions finish, except those of a node (see endLimit). If the loop
// is busy, end neither waits nor logs, because the loop may be blocked on a log that no process reads.
func (d *daemon) end(ended <-chan error) error {
	since := time.Now()
	select {
	case err := <-ended:
		return err
	case <-time.After(d.endLimit):
	}
	if d.agent.IsStuck(since) {
		return nil
	}
	return <-ended
}
