package executor

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestSemaphore checks that a holder blocks others until it leaves, but only for a moment.
func TestSemaphore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, began := make(semaphore, 1), time.Now()
		leave := c.enter()
		time.AfterFunc(holdMax/4, leave)
		slow := c.enter()
		if waited := time.Since(began); waited != holdMax/4 {
			t.Errorf("the second stop entered after %v", waited)
		}
		last := c.enter()
		if waited := time.Since(began); waited != holdMax/4+holdMax {
			t.Errorf("the third stop entered after %v", waited)
		}
		slow()
		last()
		last()
		if len(c) != 0 {
			t.Errorf("%d slots are still occupied", len(c))
		}
	})
}
