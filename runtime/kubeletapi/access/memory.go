package access

import (
	"context"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/apiserver/pkg/authentication/user"
)

// answer is an answer of the API server: about a token, with its user, or about a permission.
type answer struct {
	accepted bool
	user     *user.DefaultInfo
}

const (
	// answersMax limits the answers of one kind that are remembered.
	answersMax = 4096
	// reviewTime limits the time of a request to the API server with its retries (apiserver: sharedLookupTimeout).
	reviewTime = 30 * time.Second
	// acceptedTime is how long an accepted token counts as known after its last answer.
	acceptedTime = time.Hour
)

// memory remembers answers. Those that accept are apart from the others, so that refused clients cannot displace them.
type memory struct {
	acceptTTL, refuseTTL time.Duration
	accepts, refuses     *cache.LRUExpireCache
	// accepted has keys whose last answer accepted, also if it has expired.
	accepted *cache.LRUExpireCache
	// requests are those in flight. Equal ones are made once.
	requests singleflight.Group
}

func newMemory(acceptTTL, refuseTTL time.Duration) *memory {
	return &memory{
		acceptTTL: acceptTTL, refuseTTL: refuseTTL,
		accepts: cache.NewLRUExpireCache(answersMax), refuses: cache.NewLRUExpireCache(answersMax),
		accepted: cache.NewLRUExpireCache(answersMax),
	}
}

// find returns a remembered answer.
func (m *memory) find(key string) (answer, bool) {
	for _, c := range []*cache.LRUExpireCache{m.accepts, m.refuses} {
		if found, ok := c.Get(key); ok {
			return found.(answer), true // it holds nothing else
		}
	}
	return answer{}, false
}

// get returns a remembered answer, or that of a request. The request continues if one of several callers leaves.
func (m *memory) get(ctx context.Context, key string, ask func(context.Context) (answer, error)) (answer, error) {
	if found, ok := m.find(key); ok {
		return found, nil
	}
	result := m.requests.DoChan(key, func() (any, error) {
		limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), reviewTime)
		defer cancel()
		found, err := ask(limited)
		if err == nil {
			m.keep(key, found)
		}
		return found, err
	})
	select {
	case r := <-result:
		return r.Val.(answer), r.Err // it is always an answer
	case <-ctx.Done():
		return answer{}, context.Cause(ctx)
	}
}

func (m *memory) keep(key string, found answer) {
	if !found.accepted {
		m.accepts.Remove(key)
		m.accepted.Remove(key)
		m.refuses.Add(key, found, m.refuseTTL)
		return
	}
	m.refuses.Remove(key)
	m.accepted.Add(key, true, acceptedTime)
	m.accepts.Add(key, found, m.acceptTTL)
}

// wasAccepted reports whether the last answer accepted the key, also if it has expired.
func (m *memory) wasAccepted(key string) bool {
	_, ok := m.accepted.Get(key)
	return ok
}

// The limits of requests about tokens that are not known: for one client and for all, each second, with bursts.
const (
	clientRate, clientBurst = 1, 20
	totalRate, totalBurst   = 10, 50
	// clientsMax limits the clients that are remembered, and clientTime is how long.
	clientsMax = 1024
	clientTime = time.Hour
)

// limit limits the requests to the API server about tokens that are not known. A client without a valid token could
// cause any number of them. A kubelet has no such limit.
type limit struct {
	mu      sync.Mutex
	clients *cache.LRUExpireCache
	total   *rate.Limiter
}

func newLimit() *limit {
	return &limit{clients: cache.NewLRUExpireCache(clientsMax), total: rate.NewLimiter(totalRate, totalBurst)}
}

// allow reports whether a client may cause one more request.
func (l *limit) allow(client netip.Addr) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	found, _ := l.clients.Get(client)
	own, known := found.(*rate.Limiter)
	if !known {
		own = rate.NewLimiter(clientRate, clientBurst)
	}
	l.clients.Add(client, own, clientTime)
	return own.Allow() && l.total.Allow()
}
