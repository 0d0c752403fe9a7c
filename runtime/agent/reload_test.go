package agent

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// TestReloadReturnsPendingSources checks that a reload waits for sources that answer in time and returns the others.
func TestReloadReturnsPendingSources(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow, soon, never := make(chan struct{}), make(chan struct{}), make(chan struct{})
		time.AfterFunc(rereadWait+time.Second, func() { close(slow) })
		time.AfterFunc(rereadWait/2, func() { close(soon) })
		names := stillRead(t.Context(), []reread{{"never", never}, {"soon", soon}, {"slow", slow}})
		if !slices.Equal(names, []string{"never", "slow"}) {
			t.Errorf("%v", names)
		}
	})
}
