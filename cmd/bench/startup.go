package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
)

// The initialisation is measured so often, and so many packages are named.
const (
	startupRuns = 20
	startupTop  = 10
)

// startup asks the Go runtime what the initialisation of each package costs
// (GODEBUG=inittrace=1): the means of some runs.
func (n *node) startup(ctx context.Context) (*Startup, error) {
	sums := map[string]float64{}
	for range startupRuns {
		e, err := execute(ctx, "env", "GODEBUG=inittrace=1", n.o.podctl, "version", "--client")
		if err != nil {
			return nil, err
		}
		for line := range strings.Lines(e.stderr) {
			if p, ok := parseInit(line); ok {
				sums[p.Name] += p.Ms / startupRuns
			}
		}
	}
	s := &Startup{Packages: len(sums)}
	for name, ms := range sums {
		s.TotalMs += ms
		s.Top = append(s.Top, Package{Name: name, Ms: ms})
	}
	slices.SortFunc(s.Top, func(a, b Package) int { return cmp.Or(cmp.Compare(b.Ms, a.Ms), cmp.Compare(a.Name, b.Name)) })
	s.Top = s.Top[:min(startupTop, len(s.Top))]
	return s, nil
}

// parseInit reads a line "init PACKAGE @1.2 ms, 0.34 ms clock, …".
func parseInit(line string) (Package, bool) {
	var p Package
	var at float64
	n, err := fmt.Sscanf(line, "init %s @%f ms, %f ms clock", &p.Name, &at, &p.Ms)
	return p, err == nil && n == 3
}
