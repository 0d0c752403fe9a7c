package sources

import (
	"bytes"
	"time"

	"github.com/podctl/podctl/podspec/load"
)

// text is the state of one text of a source.
type text struct {
	// seen is the content of the last read. It is nil if the read failed.
	seen []byte
	// valid is the last valid version, which is in effect. known is set once there was one.
	valid *load.Text
	known bool
	// fault is the problem of the last read. since is when the first of an unbroken series of faults was found.
	fault string
	since time.Time
	// gone is when the text was first missing. It is zero while the text exists.
	gone time.Time
}

// counts reports whether the text is in effect.
func (x *text) counts() bool { return x.valid != nil && x.gone.IsZero() }

// isAs reports whether a text is unchanged since the last read.
func (x *text) isAs(read []byte) bool {
	return x.gone.IsZero() && x.seen != nil && bytes.Equal(x.seen, read)
}

// leave records that the text is missing. It reports whether the text was in effect until now.
func (x *text) leave(now time.Time) bool {
	counted := x.counts()
	if x.gone.IsZero() {
		x.gone = now
	}
	return counted
}

// arrive records that the text exists. It reports whether its last valid version is in effect again, because it was
// missing only for a moment.
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

// forgotten reports whether the text has been missing for so long that it has no effect any more.
func (x *text) forgotten(now time.Time) bool {
	return !x.gone.IsZero() && !now.Before(x.gone.Add(Lingers))
}

// blame records the fault of the text. It is empty if there is none.
func (x *text) blame(now time.Time, fault string) {
	if x.fault == "" {
		x.since = now
	}
	x.fault = fault
}
