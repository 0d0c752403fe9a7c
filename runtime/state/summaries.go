package state

import (
	"sync"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Summaries caches a value computed from each checkpoint. It reads a checkpoint again only when the file has changed.
// An agent with many pods needs all of them in each pass that creates a pod.
type Summaries[T any] struct {
	layout Layout
	of     func(*Checkpoint) T

	mu   sync.Mutex
	kept map[types.UID]summary[T]
}

// summary is the value of one file.
type summary[T any] struct {
	file  syscall.Stat_t
	read  time.Time
	value T
}

// NewSummaries returns the summaries of the checkpoints of a layout.
func NewSummaries[T any](layout Layout, of func(*Checkpoint) T) *Summaries[T] {
	return &Summaries[T]{layout: layout, of: of, kept: map[types.UID]summary[T]{}}
}

// All returns the summaries of all readable checkpoints, in the order of the uids.
func (s *Summaries[T]) All() ([]T, error) {
	pods, err := s.layout.Pods().known()
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	kept := make(map[types.UID]summary[T], len(pods))
	all := make([]T, 0, len(pods))
	key := s.layout.DigestKey().known()
	for _, pod := range pods {
		one, ok := s.kept[pod.uid]
		if now := statOf(pod); !ok || !one.isOf(now) {
			c, err := pod.Checkpoint().read(key)
			if err != nil {
				continue
			}
			one = summary[T]{file: now, read: time.Now(), value: s.of(c)}
		}
		kept[pod.uid] = one
		all = append(all, one.value)
	}
	s.kept = kept
	return all, nil
}

// statOf identifies the current file of a pod's checkpoint. It is zero if there is none.
func statOf(pod Pod) (file syscall.Stat_t) {
	info, err := pod.layout.dir().Lstat(pod.Checkpoint().Path())
	if err != nil {
		return file
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		file = *stat
		file.Atim = syscall.Timespec{} // Reading changes only the access time.
	}
	return file
}

// tick is longer than the resolution of file times.
const tick = time.Second

// isOf reports whether the summary belongs to this file. A file written just before it was read may have changed again
// within the same tick.
func (s *summary[T]) isOf(file syscall.Stat_t) bool {
	return file == s.file && file.Ino != 0 && s.read.Sub(time.Unix(file.Ctim.Unix())) > tick
}
