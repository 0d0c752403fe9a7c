package model

import (
	"testing"
	"time"
)

// TestRepeatedDeletion checks that the time of the first request and the shortest grace period are kept.
func TestRepeatedDeletion(t *testing.T) {
	begun := time.Unix(1_000_000, 0)
	var d *Deletion
	for _, step := range []struct {
		after time.Duration
		grace int64
		want  int64
	}{{0, 30, 30}, {time.Minute, 30, 30}, {2 * time.Minute, 5, 5}, {3 * time.Minute, 60, 5}, {4 * time.Minute, 0, 5}} {
		d = d.Again(Deletion{At: begun.Add(step.after), GracePeriodSeconds: step.grace})
		if !d.At.Equal(begun) || d.GracePeriodSeconds != step.want {
			t.Errorf("after %s with %d s: %+v", step.after, step.grace, d)
		}
	}
}
