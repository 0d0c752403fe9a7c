package statuses

import (
	"testing"
	"time"
)

// TestBackoff checks that delays double from 1 s to 30 s, less a random fifth, and that the server may ask for more, up
// to 30 s.
func TestBackoff(t *testing.T) {
	var b backoff
	for i, want := range []time.Duration{1, 2, 4, 8, 16, 30, 30} {
		if b = b.failed(noon(), 0, 0); b.until.Sub(noon()) != want*time.Second {
			t.Errorf("failure %d: %s, want %d s", i+1, b.until.Sub(noon()), want)
		}
	}
	for _, c := range []struct {
		wait   time.Duration
		spread float64
		want   time.Duration
	}{
		{0, 1, 24 * time.Second},
		{0, 0.5, 27 * time.Second},
		{29 * time.Second, 1, 29 * time.Second},
		{time.Hour, 1, 30 * time.Second},
		{-time.Hour, 0, 30 * time.Second},
	} {
		if got := b.failed(noon(), c.wait, c.spread).until.Sub(noon()); got != c.want {
			t.Errorf("wait %s, spread %v: %s, want %s", c.wait, c.spread, got, c.want)
		}
	}
}
