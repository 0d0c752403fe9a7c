package mirrors

import (
	"context"
	"errors"
	"log/slog"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/podctl/podctl/runtime/cluster/apiclient"
	"github.com/podctl/podctl/runtime/cluster/apierror"
	"github.com/podctl/podctl/runtime/sleep"
)

const (
	// pause is the shortest time between two decisions, because steps of passes come in rows.
	pause = 50 * time.Millisecond
	// retryFirst and retryLast limit the time after a failure (kubelet: the resync of a pod, 60 to 90 s).
	retryFirst, retryLast = 60 * time.Second, 90 * time.Second
	// trust is how long the answer to a request counts while the watch does not report it.
	trust = 10 * time.Second
	// patience limits the first request, and patienceMax each one. It doubles with each request without an answer,
	// because a connection may be lost, or the server slow.
	patience, patienceMax = time.Minute, time.Hour
)

// Settings configure a Manager. Every field is required.
type Settings struct {
	// Client is the REST client of core/v1.
	Client rest.Interface
	// Read returns the state at this moment. It returns an error if the agent cannot be asked, or if the pods of the
	// API have not been listed.
	Read func(ctx context.Context) (*State, error)
	// Confirm returns an error if the API server is that of another cluster, or does not respond.
	Confirm func(ctx context.Context) error
	// Random returns numbers in [0, 1).
	Random func() float64
	Log    *slog.Logger
}

// Manager creates and deletes mirror pods. Wake and Retry may be called from any goroutine, and do not block.
type Manager struct {
	Settings

	// woken holds a value if the state may have changed, and retry if failed requests must be made again.
	woken, retry chan struct{}

	// The goroutine of Run has these fields. until is when requests may be made again after a failure that is not about
	// one pod. failed has the actions that failed, and answered the answers that the watch has not reported.
	until    time.Time
	failures apierror.Once
	failed   map[key]*failure
	answered map[types.NamespacedName]answer
	patience time.Duration
}

// failure is an action that has failed, and when it is due again.
type failure struct {
	apierror.Once

	until time.Time
}

// answer is the mirror pod with a name after a request, or nil if it is gone. deleted is the uid of the one before. It
// counts until a time.
type answer struct {
	pod     *v1.Pod
	deleted types.UID
	until   time.Time
}

// outdates reports whether an answer is newer than the watched copy, which is nil without one.
func (a *answer) outdates(watched *v1.Pod, now time.Time) bool {
	switch {
	case !a.until.After(now):
		return false
	case watched == nil:
		return a.pod != nil && a.pod.UID != a.deleted
	}
	return watched.UID == a.deleted
}

// New returns a manager. It sends nothing before Run.
func New(s Settings) *Manager {
	return &Manager{
		Settings: s, woken: make(chan struct{}, 1), retry: make(chan struct{}, 1), patience: patience,
		failed: map[key]*failure{}, answered: map[types.NamespacedName]answer{},
	}
}

// Wake reports that pods or mirror pods may have changed.
func (m *Manager) Wake() { sleep.Wake(m.woken) }

// Retry reports that the API server responds again, or has listed its pods. Failed requests are made again at once.
func (m *Manager) Retry() { sleep.Wake(m.retry) }

// Run creates and deletes mirror pods until the context ends.
func (m *Manager) Run(ctx context.Context) {
	for ctx.Err() == nil {
		next := m.act(ctx)
		_ = sleep.For(ctx, pause) // the loop checks the context
		timer := time.NewTimer(time.Until(next))
		select {
		case <-ctx.Done():
		case <-m.woken:
		case <-timer.C:
		case <-m.retry:
			m.until = time.Time{}
			for _, f := range m.failed {
				f.until = time.Time{}
			}
		}
		timer.Stop()
	}
}

// act makes the requests that are due, until none is, and returns when to call it again if nothing changes.
func (m *Manager) act(ctx context.Context) time.Time {
	for ctx.Err() == nil {
		now := time.Now()
		due, next := m.due(ctx, now)
		if len(due) == 0 {
			return next
		}
		if err := m.confirm(ctx); err != nil {
			m.failures.Warn(ctx, m.Log, "cannot create or delete mirror pods", err)
			m.until = time.Now().Add(m.delay())
			continue
		}
		m.failures.News(nil)
		for _, a := range due {
			m.request(ctx, a)
			if m.until.After(now) {
				break
			}
		}
	}
	return time.Time{}
}

// due returns the actions that may be taken now, and when to look again.
func (m *Manager) due(ctx context.Context, now time.Time) (due []action, next time.Time) {
	next = now.Add(retryLast)
	if m.until.After(now) {
		return nil, m.until
	}
	s, err := m.Read(ctx)
	if err != nil {
		return nil, next // A change will wake the manager.
	}
	next = m.addAnswers(s, now, next)
	planned := map[key]*failure{}
	for _, a := range s.actions() {
		f := m.failed[a.key()]
		if f == nil || !f.until.After(now) {
			due = append(due, a)
		} else if f.until.Before(next) {
			next = f.until
		}
		if f != nil {
			planned[a.key()] = f
		}
	}
	m.failed = planned
	return due, next
}

// addAnswers adds to the state what the watch has not reported yet. It returns the first end of an answer, or next.
func (m *Manager) addAnswers(s *State, now, next time.Time) time.Time {
	watched := map[types.NamespacedName]*v1.Pod{}
	for _, pod := range s.Mirrors {
		watched[nameOf(pod)] = pod
	}
	for name, a := range m.answered {
		if !a.outdates(watched[name], now) {
			delete(m.answered, name)
			continue
		}
		if delete(watched, name); a.pod != nil {
			watched[name] = a.pod
		}
		if a.until.Before(next) {
			next = a.until
		}
	}
	s.Mirrors = s.Mirrors[:0:0]
	for _, pod := range watched {
		s.Mirrors = append(s.Mirrors, pod)
	}
	return next
}

// confirm checks that the API server is that of this cluster.
func (m *Manager) confirm(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, m.patience)
	defer cancel()
	return m.Confirm(ctx)
}

// request makes the request of an action, and records its result.
func (m *Manager) request(ctx context.Context, a action) {
	limited, cancel := context.WithTimeout(ctx, m.patience)
	defer cancel()
	pod, err := m.do(limited, a)
	if err == nil {
		m.note(a, pod)
		return
	}
	if errors.Is(err, context.DeadlineExceeded) {
		m.patience = min(2*m.patience, patienceMax)
	}
	f := m.fail(a.key())
	if !apierror.IsFromAPI(err) {
		m.until = f.until // The API server does not respond.
	}
	f.Warn(ctx, m.Log, a.failed(), err, "pod", nameOf(a.pod()).String())
}

// note records the success of an action. pod is the mirror pod that exists after it, or nil.
func (m *Manager) note(a action, pod *v1.Pod) {
	name := nameOf(a.pod())
	m.patience = patience
	delete(m.failed, a.key())
	next := answer{pod: pod, deleted: m.answered[name].deleted, until: time.Now().Add(trust)}
	if a.remove != nil {
		next.deleted = a.remove.UID
	} else if hashOf(pod) != hashOf(a.create) {
		// Admission has changed it. Another one would be the same.
		m.fail(key{name, pod.UID})
	}
	m.answered[name] = next
}

// fail records that an action must wait before the next try.
func (m *Manager) fail(k key) *failure {
	f := m.failed[k]
	if f == nil {
		f = &failure{}
		m.failed[k] = f
	}
	f.until = time.Now().Add(m.delay())
	return f
}

// failed describes the failure of an action.
func (a action) failed() string {
	if a.remove != nil {
		return "cannot delete a mirror pod"
	}
	return "cannot create a mirror pod"
}

// do makes the request of an action, and returns the mirror pod that exists after it, or nil. One that is already gone
// counts as deleted.
func (m *Manager) do(ctx context.Context, a action) (*v1.Pod, error) {
	pod := a.pod()
	if a.create != nil {
		created, err := apiclient.Do[v1.Pod](ctx, m.to(m.Client.Post(), pod).Body(pod))
		if err == nil && (created.UID == "" || nameOf(created) != nameOf(pod)) {
			return nil, errOtherPod
		}
		return created, err
	}
	err := apiclient.Delete(ctx, m.to(m.Client.Delete(), pod).Name(pod.Name), pod.UID, new(int64))
	switch {
	case apierror.IsFromAPI(err) && (apierrors.IsNotFound(err) || apierrors.IsConflict(err)):
		return nil, nil
	case err == nil && len(pod.Finalizers) > 0:
		// It stays until its finalizers are removed.
		waits := pod.DeepCopy()
		waits.DeletionTimestamp, waits.DeletionGracePeriodSeconds = new(metav1.Now()), new(int64)
		return waits, nil
	}
	return nil, err
}

func (m *Manager) to(r *rest.Request, pod *v1.Pod) *rest.Request {
	return r.Namespace(pod.Namespace).Resource("pods").MaxRetries(0)
}

// errOtherPod is the error of an answer that is not the created pod.
var errOtherPod = errors.New("the API server answers with another object than the mirror pod")

// delay returns the time until a failed request is made again.
func (m *Manager) delay() time.Duration {
	return retryFirst + time.Duration(m.Random()*float64(retryLast-retryFirst))
}
