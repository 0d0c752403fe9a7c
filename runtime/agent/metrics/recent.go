package metrics

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// freshFor is how long gathered metrics are shown.
const freshFor = time.Second

// recent gathers at most once a second: some metrics are asked of the runtime, and the port may be open to everybody.
type recent struct {
	from prometheus.Gatherer
	now  func() time.Time

	mu       sync.Mutex
	at       time.Time
	families []*dto.MetricFamily
	err      error
}

// Gather returns the metrics of less than a second ago, or gathers them.
func (r *recent) Gather() ([]*dto.MetricFamily, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if since := r.now().Sub(r.at); r.at.IsZero() || since < 0 || since >= freshFor {
		r.families, r.err = r.from.Gather()
		// The time of the end: gathering may take longer than a second.
		r.at = r.now()
	}
	return r.families, r.err
}
