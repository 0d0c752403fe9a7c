package apitest

import (
	"testing/synctest"
	"time"
)

// Sleep waits on the clock of a test, then until the other goroutines of the test wait too. What they do at the end of
// that time has been done then, and the test may read what they wrote.
func Sleep(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}
