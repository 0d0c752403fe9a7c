package apitest

import (
	"strings"
	"sync"
)

// Log collects the lines of a logger. It is safe for concurrent use: a goroutine may write while the test reads.
type Log struct {
	mu   sync.Mutex
	text strings.Builder
}

// Write appends a line. It does not fail.
func (l *Log) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(line)
}

// String returns all lines.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}
