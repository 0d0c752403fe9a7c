package pleg

import (
	"context"
	"errors"
	"io"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podctl/podctl/runtime/sleep"
)

// Event is a notification of the generator.
type Event struct {
	// Pods are the pods that may have changed.
	Pods []types.UID
	// Up is set when the runtime answers for the first time or again. Each pod may have changed.
	Up bool
	// Down is the reason why the runtime does not answer. It is nil if the runtime answers. It is reported once.
	Down error
}

// Times are the intervals of the generator.
type Times struct {
	// Relist is how often all containers are listed if the runtime sends no events. Resync is how often they are listed
	// if it does.
	Relist, Resync time.Duration
	// ReopenMin and ReopenMax limit the pause before a broken stream of events is opened again.
	ReopenMin, ReopenMax time.Duration
	// Quiet is the time after which an open stream without events or errors counts as working.
	Quiet time.Duration
}

// Usual returns the times of an agent.
func Usual() Times {
	return Times{
		Relist:    time.Second,
		Resync:    time.Minute,
		ReopenMin: 100 * time.Millisecond,
		ReopenMax: 5 * time.Second,
		Quiet:     2 * time.Second,
	}
}

// Generator watches the containers of a runtime.
type Generator struct {
	client runtimeapi.RuntimeServiceClient
	times  Times
	notify func(Event)
	// Relisted is called with the start, the duration and the error of each list. It may be nil. Set it before Run.
	Relisted func(at time.Time, took time.Duration, err error)
	// Exits calls onExit with the ID of each container whose process ends, until the context ends or the connection
	// breaks. Then it is called again, unless the error is an errors.ErrUnsupported. If nil, exits are not watched. Set
	// it before Run.
	Exits func(ctx context.Context, onExit func(id string)) error

	records records
	// streams carries the events of the listeners to Run.
	streams chan message
	// reopen makes the listener retry a runtime that sent no events.
	reopen chan struct{}
	// streaming is set while the runtime sends events. up is set while it answers. reported is set once either state
	// was reported.
	streaming, up bool
	onExit        bool
}

// New returns a generator. It calls notify from one goroutine.
func New(client runtimeapi.RuntimeServiceClient, times Times, notify func(Event)) *Generator {
	return &Generator{
		client:  client,
		times:   times,
		notify:  notify,
		records: records{},
		streams: make(chan message),
		reopen:  make(chan struct{}, 1),
	}
}

// message is a message of a listener: an event, the container of an ended process, or the state of the stream.
type message struct {
	event  *runtimeapi.ContainerEventResponse
	exited string
	open   bool
}

// Run watches the runtime until the context ends.
func (g *Generator) Run(ctx context.Context) {
	go g.listen(ctx)
	if g.Exits != nil {
		go g.listenForExits(ctx)
	}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case s := <-g.streams:
			if !g.handleMessage(s) {
				continue
			}
		case <-timer.C:
		}
		g.relist(ctx)
		timer.Reset(g.pause())
	}
}

// pause returns the time until the next list.
func (g *Generator) pause() time.Duration {
	if g.streaming && g.up {
		return g.times.Resync
	}
	return g.times.Relist
}

// handleMessage handles a message of a listener. It reports whether a list is due: after each change of the stream, so
// that nothing is missed, and for an event of an unknown container.
func (g *Generator) handleMessage(s message) (relist bool) {
	if s.exited != "" {
		// An unknown exit is that of a sandbox, or of a container that the next list has.
		if uid, known := g.records.podOf(s.exited); known {
			g.notify(Event{Pods: []types.UID{uid}})
		}
		return false
	}
	if s.event == nil {
		changed := g.streaming != s.open
		g.streaming = s.open
		return changed
	}
	uid, known := g.records.update(s.event)
	if known {
		g.notify(Event{Pods: []types.UID{uid}})
	}
	return !known
}

// relist lists all containers and reports changes since the last list.
func (g *Generator) relist(ctx context.Context) {
	began := time.Now()
	reply, err := g.client.ListContainers(ctx, &runtimeapi.ListContainersRequest{})
	if g.Relisted != nil && ctx.Err() == nil {
		g.Relisted(began, time.Since(began), err)
	}
	switch {
	case ctx.Err() != nil:
	case err != nil:
		if g.up || !g.onExit {
			g.notify(Event{Down: err})
		}
		g.up, g.onExit = false, true
	default:
		changed := g.records.replace(reply.GetContainers())
		if back := !g.up; back || len(changed) > 0 {
			g.notify(Event{Pods: changed, Up: back})
		}
		if !g.up {
			g.retry()
		}
		g.up, g.onExit = true, true
	}
}

// retry makes the listener request events again, because the runtime may have been replaced.
func (g *Generator) retry() { sleep.Wake(g.reopen) }

// listen opens a stream of events, and reopens it when it breaks.
func (g *Generator) listen(ctx context.Context) {
	again := pause{times: g.times}
	for ctx.Err() == nil {
		began := time.Now()
		err := g.receive(ctx)
		g.send(ctx, message{})
		if !supported(err) {
			select {
			case <-g.reopen:
				continue
			case <-ctx.Done():
				return
			}
		}
		if again.wait(ctx, began) != nil {
			return
		}
	}
}

// listenForExits wakes the pods of containers whose processes have ended. The runtime's records show that only later.
func (g *Generator) listenForExits(ctx context.Context) {
	again := pause{times: g.times}
	for ctx.Err() == nil {
		began := time.Now()
		err := g.Exits(ctx, func(id string) { g.send(ctx, message{exited: id}) })
		if errors.Is(err, errors.ErrUnsupported) || again.wait(ctx, began) != nil {
			return
		}
	}
}

// pause is the time before a broken stream is opened again. It doubles each time, and is reset after a stream that has
// lasted longer than the longest pause.
type pause struct {
	times Times
	last  time.Duration
}

// wait waits after the end of a stream that was opened at began.
func (p *pause) wait(ctx context.Context, began time.Time) error {
	p.last = min(2*p.last, p.times.ReopenMax)
	if p.last == 0 || time.Since(began) > p.times.ReopenMax {
		p.last = p.times.ReopenMin
	}
	return sleep.For(ctx, p.last)
}

// supported reports whether the runtime may send events on another stream after this error.
func supported(err error) bool {
	return status.Code(err) != codes.Unimplemented && !errors.Is(err, io.EOF)
}

// receive forwards the events of one stream until it breaks.
func (g *Generator) receive(ctx context.Context) error {
	ctx, end := context.WithCancel(ctx)
	defer end()
	stream, err := g.client.GetContainerEvents(ctx, &runtimeapi.GetEventsRequest{})
	if err != nil {
		return err
	}
	quiet := time.AfterFunc(g.times.Quiet, func() { g.send(ctx, message{open: true}) })
	defer quiet.Stop()
	for first := true; ; first = false {
		event, err := stream.Recv()
		if err != nil {
			return err
		}
		if first && quiet.Stop() {
			g.send(ctx, message{open: true})
		}
		g.send(ctx, message{event: event})
	}
}

func (g *Generator) send(ctx context.Context, s message) {
	select {
	case g.streams <- s:
	case <-ctx.Done():
	}
}
