package cgroup

import (
	"os"
	"strings"
	"testing"
)

// TestExiting checks that zombies and processes with a pending SIGKILL are exiting, and others are not.
func TestExiting(t *testing.T) {
	for status, want := range map[string]bool{
		"State:\tZ (zombie)\nSigPnd:\t0000000000000000\n":                             true,
		"State:\tD (disk sleep)\nSigPnd:\t0000000000000100\n":                         true,
		"State:\tR (running)\nSigPnd:\t0000000000000000\nShdPnd:\t0000000000000100\n": true,
		"State:\tS (sleeping)\nSigPnd:\t0000000000004000\n":                           false,
		"": false,
	} {
		if got := exiting(status); got != want {
			t.Errorf("%q: %t", status, got)
		}
	}
	if isExiting(0) {
		t.Error("a process of another pid namespace (cgroup.procs shows 0) is waited for without end")
	}
	if isExiting(os.Getpid()) || !isExiting(1<<30) {
		t.Error("this process, or one that is gone")
	}
}

// TestExitFlag checks that a process that releases its resources is exiting, with any name.
func TestExitFlag(t *testing.T) {
	for stat, want := range map[string]bool{
		"7 (sh) R 1 7 7 0 -1 4194308 0 0":        true,
		"7 (a) b) 4 (c) D 1 7 7 0 -1 4 0 0":      true,
		"7 (4 4 4 4 4 4) R 1 7 7 0 -1 4194304 0": false,
		"7 (sh) R 1":                             false,
		"":                                       false,
	} {
		if got := hasExitFlag(stat); got != want {
			t.Errorf("%q: %t", stat, got)
		}
	}
}

// TestBusyErrorNamesPrograms checks that the error has the names of programs.
func TestBusyErrorNamesPrograms(t *testing.T) {
	text := (&BusyError{Path: "/p", PIDs: []int{os.Getpid()}}).Error()
	if name := programOf(os.Getpid()); name == "" || !strings.Contains(text, name+" (pid ") {
		t.Error(text)
	}
}
