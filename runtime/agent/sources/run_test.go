package sources

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/podctl/podctl/podspec/load"
)

// pollerLab runs a poller in a synctest bubble, with a source that the test changes.
type pollerLab struct {
	lock    sync.Mutex
	reading Reading
	looks   int
	reread  chan chan struct{}
	events  chan struct{}
	updates []Update
}

func startLooked(t *testing.T, twice bool) *pollerLab {
	t.Helper()
	k := &pollerLab{reread: make(chan chan struct{}), events: make(chan struct{})}
	l := &poller{texts: NewTexts("/pods", load.Loader{}), interval: interval, events: k.events, readsTwice: twice}
	l.read = func(context.Context) Reading {
		k.lock.Lock()
		defer k.lock.Unlock()
		k.looks++
		return k.reading
	}
	notify := func(u Update) {
		k.lock.Lock()
		defer k.lock.Unlock()
		k.updates = append(k.updates, u)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		l.run(ctx, k.reread, notify)
	}()
	t.Cleanup(func() { cancel(); <-done })
	synctest.Wait()
	return k
}

func (k *pollerLab) has(texts ...string) {
	k.lock.Lock()
	defer k.lock.Unlock()
	k.reading = Reading{}
	for i := 0; i < len(texts); i += 2 {
		k.reading.Texts = append(k.reading.Texts, Text{Name: texts[i], Text: []byte(texts[i+1])})
	}
}

// passes lets time pass, and waits until all goroutines are blocked.
func passes(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// wants checks how often the source was read, how often it reported, and its last report.
func (k *pollerLab) wants(t *testing.T, looks, reported int, pods string) {
	t.Helper()
	k.lock.Lock()
	defer k.lock.Unlock()
	last := Update{}
	if len(k.updates) > 0 {
		last = k.updates[len(k.updates)-1]
	}
	if k.looks != looks || len(k.updates) != reported || shown(last) != pods {
		t.Fatalf("%d reads, %d updates, last %q; want %d, %d, %q", k.looks, len(k.updates), shown(last), looks, reported, pods)
	}
}

// TestLooks checks that a source is read at each interval, at an event and on request, and reports only changes.
func TestLooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := startLooked(t, false)
		passes(0)
		k.wants(t, 1, 1, "")
		passes(10 * interval)
		k.wants(t, 11, 1, "")
		k.has("a", manifest("one", "", "1"))
		passes(interval - 1)
		k.wants(t, 11, 1, "")
		passes(1)
		k.wants(t, 12, 2, "one:1")
		k.has("a", manifest("one", "", "2"))
		k.events <- struct{}{}
		passes(0)
		k.wants(t, 13, 3, "one:2")
		k.has("a", manifest("one", "", "3"))
		requested := make(chan struct{})
		k.reread <- requested
		<-requested
		k.wants(t, 14, 4, "one:3")
		passes(interval)
		k.wants(t, 15, 4, "one:3")
	})
}

// TestMissingPodsAreDropped checks that a missing pod is dropped after its time. A file source is read once more before
// that.
func TestMissingPodsAreDropped(t *testing.T) {
	for _, twice := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			k := startLooked(t, twice)
			k.has("a", manifest("one", "", "1"))
			k.events <- struct{}{}
			passes(0)
			k.has()
			k.events <- struct{}{}
			passes(DropDelay - 1)
			k.wants(t, 3, 3, "one:1")
			k.has("b", manifest("one", "", "1"))
			passes(1)
			if twice {
				// The pod has another file.
				k.wants(t, 4, 4, "one:1")
				return
			}
			k.wants(t, 3, 4, "")
		})
	}
}

// TestProblemsInTime checks that a problem is reported once, after it has lasted.
func TestProblemsInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := startLooked(t, false)
		k.lock.Lock()
		k.reading.Err = errors.New("gone")
		k.lock.Unlock()
		k.events <- struct{}{}
		passes(reportDelay - 1)
		k.wants(t, 2, 1, "")
		passes(1)
		k.wants(t, 2, 2, "")
		passes(5 * interval)
		k.wants(t, 7, 2, "")
	})
}

// TestSeriesOfEventsIsOneReport checks that a series of events leads to one report, and that an endless series is
// reported in between.
func TestSeriesOfEventsIsOneReport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		events := make(chan change)
		out, got := debounce(ctx, events, settle), 0
		count := func() int {
			synctest.Wait()
			select {
			case <-out:
				got++
			default:
			}
			return got
		}
		for range 5 {
			events <- written
			passes(settle - 1)
			if count() != 0 {
				t.Fatal("an update was sent before the source was quiet")
			}
		}
		passes(1)
		if count() != 1 {
			t.Fatalf("%d updates", got)
		}
		passes(time.Hour)
		for range 100 {
			events <- written
			passes(settle / 2)
			count()
		}
		if got < 4 || got > 7 {
			t.Errorf("continuous events are reported %d times", got)
		}
		passes(time.Hour)
		before := count()
		for i := range 3 {
			events <- replaced
			events <- replaced
			passes(settle / 10)
			if count() != before+i+1 {
				t.Fatal("a file that was replaced waits as long as one that is written")
			}
		}
		before = got
		events <- replaced
		events <- written
		events <- replaced
		passes(settle - 1)
		if count() != before {
			t.Error("an update was sent while another file is being written")
		}
		passes(1)
		events <- written
		synctest.Wait()
		if count() != before {
			t.Error("a pending notification is not replaced while files are being written")
		}
	})
}
