package sources

import (
	"bytes"
	"time"

	"github.com/podctl/podctl/podspec/load"
)

// text is what is known of one text of a source.
type text struct {
	// seen is what was read last, if it could be read.
	seen []byte
	// valid is the last version that was valid; it counts. known is set once there was one.
	valid *load.Text
	known bool
	// fault is what is wrong with what was read last, and since is when something first was.
	fault string
	since time.Time
	// gone is when the text was first missing, or empty; zero while it is there.
	gone time.Time
}

// counts reports whether pods are made of the text.
func (x *text) counts() bool { return x.valid != nil && x.gone.IsZero() }

// isAs reports whether a text is as it was read last.
func (x *text) isAs(read []byte) bool {
	return x.gone.IsZero() && x.seen != nil && bytes.Equal(x.seen, read)
}

// leave notes that the text is missing. It reports whether the text has counted until now.
func (x *text) leave(now time.Time) bool {
	counted := x.counts()
	if x.gone.IsZero() {
		x.gone = now
	}
	return counted
}

// arrive notes that the text is there. It reports whether its last valid version counts again:
// it was missing for a moment only.
func (x *text) arrive(now time.Time) bool {
	if x.gone.IsZero() {
		return false
	}
	if x.forgotten(now) {
		x.valid = nil
	}
	x.gone = time.Time{}
	return x.counts()
}

// forgotten reports whether the text has been missing for so long that nothing of it counts.
func (x *text) forgotten(now time.Time) bool {
	return !x.gone.IsZero() && !now.Before(x.gone.Add(Lingers))
}

// blame notes what is wrong with the text; empty when nothing is.
func (x *text) blame(now time.Time, fault string) {
	if x.fault == "" {
		x.since = now
	}
	x.fault = fault
}
