package housekeeping

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

func at(d time.Duration) time.Time { return time.Unix(1_700_000_000, 0).Add(d) }

// TestSchedule checks that each task has its own period, counted from the end of its last run. Tasks that are due at
// the same time run one after the other.
func TestSchedule(t *testing.T) {
	s := newSchedule(at(0))
	var got []string
	for now, end := time.Duration(0), 85*time.Second; ; {
		c, due := s.next()
		now = max(now, due.Sub(at(0)))
		if now > end {
			break
		}
		got = append(got, fmt.Sprintf("%s@%s", []string{"pulls", "logs", "records", "images"}[c], now))
		if c == recordTask {
			now += 25 * time.Second // a long run: skipped runs are not made up for
		}
		s.done(c, at(now))
	}
	const want = "pulls@0s pulls@10s logs@10s images@10s pulls@20s logs@20s pulls@30s logs@30s pulls@40s logs@40s " +
		"pulls@50s logs@50s pulls@1m0s logs@1m0s records@1m0s pulls@1m25s logs@1m25s"
	if text := strings.Join(got, " "); text != want {
		t.Errorf("got  %s\nwant %s", text, want)
	}
	if images := s.due[imageTask]; images != 310*time.Second {
		t.Errorf("images are due again at %s", images)
	}
}
