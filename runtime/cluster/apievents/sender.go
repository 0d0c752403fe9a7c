package apievents

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"

	"github.com/podctl/podctl/runtime/cluster/apiclient"
	"github.com/podctl/podctl/runtime/cluster/apierror"
	"github.com/podctl/podctl/runtime/sleep"
	"github.com/podctl/podctl/runtime/state"
)

const (
	// perSecond and burst limit the requests (kubelet: eventRecordQPS, eventBurst).
	perSecond, burst = 50, 100
	// triesMax is how often a request for an event is made while the API server responds,
	// and pause the time between two tries. Both are those of client-go.
	triesMax = 12
	pause    = 10 * time.Second
	// statusFirst is the delay of the first event after none waited. The status of a started pod is sent meanwhile:
	// users and controllers wait for it.
	statusFirst = 100 * time.Millisecond
)

// NewClient returns a client of core/v1 for events, with a limit of its own.
func NewClient(config *rest.Config) (rest.Interface, error) {
	own := rest.CopyConfig(config)
	own.QPS, own.Burst = perSecond, burst
	client, err := apiclient.New(own)
	if err != nil {
		return nil, fmt.Errorf("client for events: %w", err)
	}
	return client.Core, nil
}

// Settings configure a Sender. Every field is required.
type Settings struct {
	// Client creates and changes events (see NewClient).
	Client rest.Interface
	// Check returns nil if the API server responds (cluster.Health.Check).
	Check func() error
	// Confirm is called before each request. Its error means that the API server does not respond, or is that of
	// another cluster.
	Confirm func(ctx context.Context) error
	// Node is the name of this node.
	Node string
	// Random returns numbers in [0, 1).
	Random func() float64
	Log    *slog.Logger
}

// Sender sends events. Pod, Node and Wake may be called from any goroutine, and do not block.
type Sender struct {
	Settings

	mu     sync.Mutex
	queue  queue
	unique int64
	// signal holds a value if there may be a new event, and woken if the API server responds again.
	signal, woken chan struct{}

	// The goroutine of Run has these fields.
	correlator *record.EventCorrelator
	failures   apierror.Once
}

// New returns a sender. It sends nothing before Run.
func New(s Settings) *Sender {
	return &Sender{
		Settings: s, signal: make(chan struct{}, 1), woken: make(chan struct{}, 1),
		correlator: record.NewEventCorrelatorWithOptions(record.CorrelatorOptions{}),
	}
}

// Pod sends events of a pod of the API, without those that only podctl's own history has (isSent). pod is its newest
// copy there.
func (s *Sender) Pod(pod *v1.Pod, events []state.PodEvent) {
	for i := range events {
		if !isSent(events[i].Reason) {
			continue
		}
		s.add(podReference(pod, events[i].Container), &events[i])
	}
}

// Node sends an event of this node. kind is Normal or Warning.
func (s *Sender) Node(kind, reason, message string) {
	event := &state.PodEvent{Type: state.EventType(kind), Reason: reason, Message: message}
	s.add(nodeReference(s.Settings.Node), event)
}

// Wake reports that the API server responds again. The events that wait are sent at once.
func (s *Sender) Wake() { sleep.Wake(s.woken) }

// add adds an event to the queue.
func (s *Sender) add(object v1.ObjectReference, e *state.PodEvent) {
	unreachable := s.Check() != nil
	s.mu.Lock()
	defer s.mu.Unlock()
	own := *e
	if own.Last.IsZero() {
		own.Last = time.Now()
	}
	// Events of one step have the same time, and would have the same name.
	s.unique = max(s.unique+1, own.Last.UnixNano())
	s.queue.add(newEvent(s.Settings.Node, object, &own, s.unique))
	if unreachable {
		s.queue.keepLast()
	}
	sleep.Wake(s.signal)
}

func (s *Sender) take() *v1.Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.queue.take()
}

// Pending returns the number of events that wait, without one that is being sent.
func (s *Sender) Pending() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.queue.events)
}

// Run sends events until the context ends. Events that wait then are lost.
func (s *Sender) Run(ctx context.Context) {
	// The library would log each delay by the limit.
	ctx = klog.NewContext(ctx, klog.New(nil))
	for ctx.Err() == nil {
		e := s.take()
		if e == nil {
			select {
			case <-ctx.Done():
			case <-s.signal:
				sleep.For(ctx, statusFirst) //nolint:errcheck // the loop ends with the context
			}
			continue
		}
		result, err := s.correlator.EventCorrelate(e)
		if err == nil && !result.Skip {
			s.deliver(ctx, result)
		}
	}
}

// deliver sends one event. While the API server does not respond, it waits; otherwise it gives up after some tries.
func (s *Sender) deliver(ctx context.Context, result *record.EventCorrelateResult) {
	// The first wait is random, so that nodes do not try at the same time.
	wait := time.Duration(s.Random() * float64(pause))
	for tries := 0; ctx.Err() == nil; wait = pause {
		if s.Confirm(ctx) != nil {
			s.rest(ctx, wait) // The status of the Node reports it.
			continue
		}
		sent, err := s.send(ctx, result)
		if err == nil {
			s.correlator.UpdateState(sent)
			s.failures.News(nil)
			return
		}
		if !apierrors.HasStatusCause(err, v1.NamespaceTerminatingCause) {
			s.failures.Warn(ctx, s.Log, "cannot send an event to the API server", err)
		}
		if s.Check() == nil {
			if tries++; tries >= triesMax {
				return
			}
		}
		if refused(err) {
			return
		}
		s.rest(ctx, wait)
	}
}

// send makes one request: a patch for an event that is counted, otherwise a new event.
func (s *Sender) send(ctx context.Context, result *record.EventCorrelateResult) (*v1.Event, error) {
	e := result.Event
	if e.Count > 1 {
		r := s.Client.Patch(types.StrategicMergePatchType).Name(e.Name).Body(result.Patch)
		sent, err := do(ctx, r, e.Namespace)
		if !apierrors.IsNotFound(err) {
			return sent, err
		}
	}
	// The event that is counted may have expired.
	e.ResourceVersion = ""
	return do(ctx, s.Client.Post().Body(e), e.Namespace)
}

func do(ctx context.Context, r *rest.Request, namespace string) (*v1.Event, error) {
	return apiclient.Do[v1.Event](ctx, r.Namespace(namespace).Resource("events"))
}

// refused reports whether another try would fail in the same way.
func refused(err error) bool {
	return apierror.IsRefusal(err) || errors.As(err, new(*rest.RequestConstructionError))
}

// rest waits before the next try, and keeps the last event of each kind if the API server does not respond.
func (s *Sender) rest(ctx context.Context, d time.Duration) {
	if s.Check() != nil {
		s.mu.Lock()
		s.queue.keepLast()
		s.mu.Unlock()
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	case <-s.woken:
	}
}
