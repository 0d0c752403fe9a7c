package proxy

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// TestWaitSkipsDelay checks that a command that waits for the worker does not wait for the delay that collects changes.
func TestWaitSkipsDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runs := 0
		w := &worker{do: func(context.Context) error { runs++; return nil }}
		began := time.Now()
		w.request(t.Context())
		w.request(t.Context())
		if err := w.wait(); err != nil || runs != 1 || !time.Now().Equal(began) {
			t.Errorf("%v, %d runs, after %s", err, runs, time.Since(began))
		}
	})
}

// TestRequestsDuringRun checks that requests during a run lead to one more run, after another delay.
func TestRequestsDuringRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w *worker
		var at []time.Duration
		began := time.Now()
		w = &worker{do: func(ctx context.Context) error {
			if at = append(at, time.Since(began)); len(at) == 1 {
				w.request(ctx)
				w.request(ctx)
			}
			return nil
		}}
		w.request(t.Context())
		time.Sleep(time.Second)
		synctest.Wait()
		if len(at) != 2 || at[0] != settle || at[1] != 2*settle {
			t.Errorf("runs after %v", at)
		}
	})
}
