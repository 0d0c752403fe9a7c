package metrics

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// TestGatheredOnceASecond checks that metrics are gathered once a second, however often they are read, also when the
// clock is set back.
func TestGatheredOnceASecond(t *testing.T) {
	now, times := time.Unix(1_000_000, 0), 0
	r := &recent{now: func() time.Time { return now }, from: prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) {
		times++
		return nil, nil
	})}
	for _, step := range []struct {
		after time.Duration
		times int
	}{{0, 1}, {0, 1}, {freshFor - 1, 1}, {1, 2}, {freshFor, 3}, {-time.Hour, 4}, {0, 4}} {
		now = now.Add(step.after)
		if _, err := r.Gather(); err != nil || times != step.times {
			t.Errorf("at %s gathered %d times, want %d: %v", now, times, step.times, err)
		}
	}
}
