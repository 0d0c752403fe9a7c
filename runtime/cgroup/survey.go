package cgroup

import (
	"slices"

	"golang.org/x/sys/unix"
)

// Survey describes a machine's cgroups.
type Survey struct {
	// Version is 1 or 2; zero if none are mounted. A machine with both uses 1.
	Version     int
	Controllers []string
	// Writable reports whether podctl can create cgroups for every controller.
	Writable bool
}

// Look returns the Survey of this machine.
func Look() Survey {
	t, err := findTree()
	if err != nil {
		return Survey{}
	}
	return surveyOf(t)
}

// surveyOf returns the Survey of a tree.
func surveyOf(t *tree) Survey {
	s := Survey{Version: 1, Writable: true}
	if t.unified {
		s.Version = 2
	}
	for _, h := range t.hierarchies {
		s.Controllers = append(s.Controllers, h.controllers...)
		if len(h.controllers) > 0 && unix.Access(h.dir, unix.W_OK) != nil {
			s.Writable = false
		}
	}
	slices.Sort(s.Controllers)
	return s
}
