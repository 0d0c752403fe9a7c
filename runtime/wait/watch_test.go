package wait

import (
	"testing"
	"time"
)

// TestPausesFollowTheWait: a change is seen late by a small part of the wait, and a long
// wait takes few looks.
func TestPausesFollowTheWait(t *testing.T) {
	var w watch
	var waited time.Duration
	looks := 0
	for pause := w.first(); waited < 10*time.Second; pause = w.after(pause) {
		if limit := pauseMin + waited/7; pause > limit {
			t.Errorf("after %v the pause is %v, more than %v", waited, pause, limit)
		}
		waited += pause
		looks++
	}
	if looks > 60 {
		t.Errorf("%d looks in ten seconds", looks)
	}
}

// TestEventsReplaceLooks: a runtime that sends events is asked only in case one is lost,
// and soon after one that shows nothing yet.
func TestEventsReplaceLooks(t *testing.T) {
	w := watch{happened: make(chan struct{}, 1)}
	w.sends.Store(true)
	if pause := w.first(); pause != silentWithEvents {
		t.Errorf("the first look comes after %v", pause)
	}
	w.tell()
	if told, err := w.next(t.Context(), time.Hour); !told || err != nil {
		t.Errorf("told %v, error %v", told, err)
	}
	if told, err := w.next(t.Context(), time.Nanosecond); told || err != nil {
		t.Errorf("after nothing happened: told %v, error %v", told, err)
	}
}
