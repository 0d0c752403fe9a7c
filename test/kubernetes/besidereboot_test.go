package kubernetes

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// rebootRounds is how often all pods end and start again with the API server, and then without it.
	rebootRounds = 3
	// rebootTarget is the limit for the time without the API server, as a multiple of the time with it.
	rebootTarget = 1.2
	// neverAfter is how long a kubelet gets to start pods without the API server.
	neverAfter = time.Minute
)

// reboots are the seconds from the start of the program until all pods run. without is empty if they never run.
type reboots struct{ with, without []float64 }

// TestBesideKubeletReboot measures how long podctl agent and a kubelet take until all pods run after a reboot, with the
// API server, and while it does not answer. podctl must start them without it, as fast as with it.
func TestBesideKubeletReboot(t *testing.T) {
	found := map[string]*reboots{"podctl": {}, "kubelet": {}}
	for _, name := range []string{"podctl", "kubelet"} {
		t.Run(name, func(t *testing.T) { newNode(t).measure(t, name).rebootOften(t, found[name]) })
	}
	p, k := found["podctl"], found["kubelet"]
	if t.Failed() || len(p.with) == 0 || len(k.with) == 0 {
		return
	}
	t.Logf("reboot with %d pods\n| measured | podctl | kubelet |\n|---|---|---|\n"+
		"| with the API server → all pods run | %s | %s |\n| without the API server → all pods run | %s | %s |\n", besidePods,
		seconds(p.with), seconds(k.with), seconds(p.without), seconds(k.without))
	switch {
	case len(p.without) == 0:
		t.Error("podctl does not start its pods without the API server")
	case median(p.without) > rebootTarget*median(p.with):
		t.Logf("target missed: without the API server %.2f times the start with it, at most %.1f",
			median(p.without)/median(p.with), rebootTarget)
	}
}

// seconds returns the median of times.
func seconds(all []float64) string {
	if len(all) == 0 {
		return "never"
	}
	return fmt.Sprintf("%.2f s", median(all))
}

// rebootOften measures reboots of the node, with and without the API server in turn.
func (m *measurement) rebootOften(t *testing.T, r *reboots) {
	t.Helper()
	program := m.beginWith(t, besidePods)
	for range rebootRounds {
		var took float64
		program, took = m.reboot(t, program, patience)
		r.with = append(r.with, took)
		m.api.awaitNode(t, program)
		time.Sleep(besideRest)
	}
	for range rebootRounds {
		m.api.cmd.Process.Signal(unix.SIGSTOP) //nolint:errcheck // the next request fails if it has ended
		var took float64
		program, took = m.reboot(t, program, neverAfter)
		m.api.cmd.Process.Signal(unix.SIGCONT) //nolint:errcheck // as above
		m.api.awaitNode(t, program)
		time.Sleep(besideRest)
		if took == 0 {
			return
		}
		r.without = append(r.without, took)
	}
}

// reboot ends the program and all containers, changes the id of the boot, and starts the program again. It returns the
// seconds until all pods run, or zero if they do not within the limit.
func (m *measurement) reboot(t *testing.T, program *process, limit time.Duration) (*process, float64) {
	t.Helper()
	program.end(t)
	before := m.records(t)
	m.endAll(t)
	changeBootID(t)
	begun := time.Now()
	program = m.begin()
	for time.Since(begun) < limit {
		program.alive(t)
		if now := m.records(t); now.newRuns(before) >= besidePods {
			return program, time.Since(begun).Seconds()
		}
		time.Sleep(50 * time.Millisecond)
	}
	return program, 0
}

// newRuns counts the running containers that are not among earlier ones.
func (r records) newRuns(before records) (n int) {
	for id, what := range r {
		if _, known := before[id]; !known && strings.HasSuffix(what, running) {
			n++
		}
	}
	return n
}
