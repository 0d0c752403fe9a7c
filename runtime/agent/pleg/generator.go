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

	"github.com/podctl/podctl/runtime/cri"
)

// Event is what the generator tells.
type Event struct {
	// Pods are the pods that something has happened to.
	Pods []types.UID
	// Up is set when the runtime answers for the first time, and again after it did not: each pod
	// may have changed.
	Up bool
	// Down is why the runtime does not answer; nil if it does. It is told once.
	Down error
	// Took is how long the list took that showed it; zero for an event of the runtime.
	Took time.Duration
}

// Times are how often the generator does what. The zero values are the kubelet's or podctl's own.
type Times struct {
	// Relist is how often all containers are listed where the runtime sends no events, Resync
	// where it does.
	Relist, Resync time.Duration
	// ReopenMin and ReopenMax bound the pause before a broken stream of events is opened again.
	ReopenMin, ReopenMax time.Duration
	// Quiet is how long a stream without an error counts as one that sends nothing.
	Quiet time.Duration
}

// Usual are the times of an agent.
func Usual() Times {
	return Times{Relist: time.Second, Resync: time.Minute, ReopenMin: 100 * time.Millisecond, ReopenMax: 5 * time.Second, Quiet: 2 * time.Second}
}

// Generator watches the containers of a runtime.
type Generator struct {
	client runtimeapi.RuntimeServiceClient
	times  Times
	tell   func(Event)
	// Relisted is told how long each list took; nil tells nobody. It is set before Run.
	Relisted func(at time.Time, took time.Duration)

	records records
	// streams tells Run what becomes of the stream of events.
	streams chan streamed
	// again lets the listener try a runtime that sent no events once more.
	again chan struct{}
	// sends is set while the runtime sends events, up while it answers.
	sends, up bool
	told      bool
}

// New makes a generator. Tell is called from one goroutine.
func New(client runtimeapi.RuntimeServiceClient, times Times, tell func(Event)) *Generator {
	return &Generator{client: client, times: times, tell: tell, records: records{}, streams: make(chan streamed), again: make(chan struct{}, 1)}
}

// streamed is something that the listener tells: an event, or that the stream is open or broken.
type streamed struct {
	event *runtimeapi.ContainerEventResponse
	open  bool
}

// Run watches until the context ends.
func (g *Generator) Run(ctx context.Context) {
	go g.listen(ctx)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case s := <-g.streams:
			if !g.streamed(s) {
				continue
			}
		case <-timer.C:
		}
		g.relist(ctx)
		timer.Reset(g.pause())
	}
}

// pause is how long until the next list.
func (g *Generator) pause() time.Duration {
	if g.sends && g.up {
		return g.times.Resync
	}
	return g.times.Relist
}

// streamed takes what the listener tells. It reports whether a list is due: with each change of
// the stream, so that nothing that happened in between is missed, and for an event of a container
// that is not known.
func (g *Generator) streamed(s streamed) (relist bool) {
	if s.event == nil {
		changed := g.sends != s.open
		g.sends = s.open
		return changed
	}
	uid, known := g.records.take(s.event)
	if known {
		g.tell(Event{Pods: []types.UID{uid}})
	}
	return !known
}

// relist lists all containers and tells what has changed since the last list.
func (g *Generator) relist(ctx context.Context) {
	began := time.Now()
	reply, err := g.client.ListContainers(ctx, &runtimeapi.ListContainersRequest{})
	if g.Relisted != nil && ctx.Err() == nil {
		g.Relisted(began, time.Since(began))
	}
	switch {
	case ctx.Err() != nil:
	case err != nil:
		if g.up || !g.told {
			g.tell(Event{Down: err})
		}
		g.up, g.told = false, true
	default:
		changed := g.records.replace(reply.GetContainers())
		if back := !g.up; back || len(changed) > 0 {
			g.tell(Event{Pods: changed, Up: back, Took: time.Since(began)})
		}
		if !g.up {
			g.retry()
		}
		g.up, g.told = true, true
	}
}

// retry lets the listener ask the runtime for events again: it may be another one by now.
func (g *Generator) retry() {
	select {
	case g.again <- struct{}{}:
	default:
	}
}

// listen opens a stream of events, and again when it breaks.
func (g *Generator) listen(ctx context.Context) {
	pause := g.times.ReopenMin
	for ctx.Err() == nil {
		began := time.Now()
		err := g.receive(ctx)
		g.send(ctx, streamed{})
		if time.Since(began) > g.times.ReopenMax {
			pause = g.times.ReopenMin
		}
		if !supported(err) {
			select {
			case <-g.again:
				continue
			case <-ctx.Done():
				return
			}
		}
		if cri.Sleep(ctx, pause) != nil {
			return
		}
		pause = min(2*pause, g.times.ReopenMax)
	}
}

// supported reports whether a stream that ended so may send events another time.
func supported(err error) bool {
	return status.Code(err) != codes.Unimplemented && !errors.Is(err, io.EOF)
}

// receive passes on the events of one stream until it breaks.
func (g *Generator) receive(ctx context.Context) error {
	ctx, end := context.WithCancel(ctx)
	defer end()
	stream, err := g.client.GetContainerEvents(ctx, &runtimeapi.GetEventsRequest{})
	if err != nil {
		return err
	}
	quiet := time.AfterFunc(g.times.Quiet, func() { g.send(ctx, streamed{open: true}) })
	defer quiet.Stop()
	for first := true; ; first = false {
		event, err := stream.Recv()
		if err != nil {
			return err
		}
		if first && quiet.Stop() {
			g.send(ctx, streamed{open: true})
		}
		g.send(ctx, streamed{event: event})
	}
}

func (g *Generator) send(ctx context.Context, s streamed) {
	select {
	case g.streams <- s:
	case <-ctx.Done():
	}
}
