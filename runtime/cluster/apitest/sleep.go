package apitest

import (
	"testing/synctest"
	"time"
)

// Sleep sleeps on the clock of a test, and then waits until all other goroutines are blocked. The test may then read
// what they wrote.
func Sleep(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}
