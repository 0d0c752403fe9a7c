package state

import (
	"sync"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Summaries are what a process needs of each checkpoint. It is read again only when the file is another one: an agent with
// many pods looks at all of them in each pass that makes a pod.
type Summaries[T any] struct {
	layout Layout
	of     func(*Checkpoint) T

	mu   sync.Mutex
	kept map[types.UID]summary[T]
}

// summary is what was made of a file.
type summary[T any] struct {
	file  syscall.Stat_t
	read  time.Time
	value T
}

// NewSummaries makes summaries of the checkpoints of a layout.
func NewSummaries[T any](layout Layout, of func(*Checkpoint) T) *Summaries[T] {
	return &Summaries[T]{layout: layout, of: of, kept: map[types.UID]summary[T]{}}
}

// All are the summaries of all checkpoints that can be read, in the order of the uids.
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

// statOf is the identity of a pod's checkpoint; zero if it has none.
func statOf(pod Pod) (file syscall.Stat_t) {
	info, err := pod.layout.dir().Lstat(pod.Checkpoint().Path())
	if err != nil {
		return file
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		file = *stat
		file.Atim = syscall.Timespec{} // Reading is no change.
	}
	return file
}

// tick is more than the times of files may be apart from when they were changed.
const tick = time.Second

// isOf reports whether a file is the one that was summed up. One that was written just before it was read may have been
// written again within the same tick.
func (s *summary[T]) isOf(file syscall.Stat_t) bool {
	return file == s.file && file.Ino != 0 && s.read.Sub(time.Unix(file.Ctim.Unix())) > tick
}
