package metrics

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// freshFor is how long gathered metrics are reused.
const freshFor = time.Second

// recent gathers at most once a second: some metrics require calls to the runtime, and the port may be open to
// everyone.
type recent struct {
	from prometheus.Gatherer
	now  func() time.Time

	gathers sync.Mutex
	last    atomic.Pointer[gathered]
}

type gathered struct {
	at       time.Time
	families []*dto.MetricFamily
	err      error
}

// Gather returns the metrics of the last second, or gathers them. While one request gathers, others get the last
// metrics.
func (r *recent) Gather() ([]*dto.MetricFamily, error) {
	last := r.last.Load()
	if last != nil && r.fresh(last) {
		return last.families, last.err
	}
	if last != nil && !r.gathers.TryLock() {
		return last.families, last.err
	}
	if last == nil {
		r.gathers.Lock()
	}
	defer r.gathers.Unlock()
	if last = r.last.Load(); last == nil || !r.fresh(last) {
		last = &gathered{}
		last.families, last.err = r.from.Gather()
		// This is the end time, because gathering may take longer than a second.
		last.at = r.now()
		r.last.Store(last)
	}
	return last.families, last.err
}

func (r *recent) fresh(g *gathered) bool {
	since := r.now().Sub(g.at)
	return since >= 0 && since < freshFor
}
