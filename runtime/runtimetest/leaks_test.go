package runtimetest

import (
	"os"
	"strings"
	"testing"
)

// TestLeaksAreFound checks that a running goroutine and an open file are found.
func TestLeaksAreFound(t *testing.T) {
	if left := untilNone(func() []string { return goroutines(map[string]bool{}) }); len(left) != 0 {
		t.Fatalf("goroutines of the tests before: %v", left)
	}
	stop, begun := make(chan struct{}), make(chan struct{})
	go func() { close(begun); <-stop }()
	<-begun
	if left := goroutines(map[string]bool{}); len(left) != 1 || !strings.Contains(left[0], "TestLeaksAreFound") {
		t.Errorf("goroutines: %v", left)
	}
	close(stop)
	if left := untilNone(func() []string { return goroutines(map[string]bool{}) }); len(left) != 0 {
		t.Errorf("goroutines that have ended: %v", left)
	}
	before := len(openFiles(t))
	f, err := os.Open(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	if open := openFiles(t); len(open) != before+1 {
		t.Errorf("%d files before, now %v", before, open)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}
