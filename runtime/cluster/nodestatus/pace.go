package nodestatus

import "time"

const (
	// computeEvery is the time between two computations of the status, plus up to computeJitter of it (kubelet:
	// nodeStatusUpdateFrequency).
	computeEvery  = 10 * time.Second
	computeJitter = 0.04
	// reportEvery is the longest time without a status (kubelet: nodeStatusReportFrequency).
	reportEvery = 5 * time.Minute
)

// pace decides when a status without changes is sent. The zero value is that of a new process.
type pace struct {
	// Sent is the time of the last status.
	Sent time.Time
	// Shift is the change of the next interval, which spreads the statuses of many nodes over time.
	Shift time.Duration
}

// Due reports whether a status without changes is sent now (kubelet: isUpdateStatusPeriodExpired).
func (p pace) Due(now time.Time) bool {
	return p.Sent.IsZero() || now.Sub(p.Sent) >= reportEvery+p.Shift
}

// Next returns the pace after a status was sent. random is in [0, 1). After a change or a start, the next interval is
// shifted by up to 50 % (kubelet: calculateDelay).
//
//nolint:revive // changed is a fact
func (p pace) Next(now time.Time, changed bool, random float64) pace {
	next := pace{Sent: now}
	if changed || p.Sent.IsZero() {
		next.Shift = time.Duration((random - 0.5) * float64(reportEvery))
	}
	return next
}

// pause returns the time until the next computation. random is in [0, 1).
func pause(random float64) time.Duration {
	return computeEvery + time.Duration(random*computeJitter*float64(computeEvery))
}
