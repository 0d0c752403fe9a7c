package sources

import (
	"bytes"
	"time"

	"github.com/podctl/podctl/podspec/load"
)

// text is the state of one text of a source.
type text struct {
	// content is the content of the last read. It is nil if the read failed.
	content []byte
	// valid is the last valid version, which is in effect. known is set once there was one.
	valid *load.Text
	known bool
	// fault is the problem of the last read. since is when the first of an unbroken series of faults was found.
	fault      string
	faultSince time.Time
	// missingSince is when the text was first missing. It is zero while the text exists.
	missingSince time.Time
}

// inEffect reports whether the text is in effect.
func (x *text) inEffect() bool { return x.valid != nil && x.missingSince.IsZero() }

// isUnchanged reports whether a text is unchanged since the last read.
func (x *text) isUnchanged(read []byte) bool {
	return x.missingSince.IsZero() && x.content != nil && bytes.Equal(x.content, read)
}

// markMissing records that the text is missing. It reports whether the text was in effect until now.
func (x *text) markMissing(now time.Time) bool {
	counted := x.inEffect()
	if x.missingSince.IsZero() {
		x.missingSince = now
	}
	return counted
}

// markPresent records that the text exists. It reports whether its last valid version is in effect again, because it
// was missing only for a moment.
func (x *text) markPresent(now time.Time) bool {
	if x.missingSince.IsZero() {
		return false
	}
	if x.expired(now) {
		x.valid = nil
	}
	x.missingSince = time.Time{}
	return x.inEffect()
}

// expired reports whether the text has been missing for so long that it has no effect any more.
func (x *text) expired(now time.Time) bool {
	return !x.missingSince.IsZero() && !now.Before(x.missingSince.Add(DropDelay))
}

// setFault records the fault of the text. It is empty if there is none.
func (x *text) setFault(now time.Time, fault string) {
	if x.fault == "" {
		x.faultSince = now
	}
	x.fault = fault
}
