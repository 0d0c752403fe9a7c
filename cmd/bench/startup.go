package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
)

// startupTop is how many packages are listed.
const startupTop = 10

// startup returns the cost of the initialisation of each package that the Go runtime reports (GODEBUG=inittrace=1).
func (n *node) startup(ctx context.Context) (*Startup, error) {
	cmd := exec.CommandContext(ctx, n.o.podctl, "version", "--client") //nolint:gosec // the program to measure
	cmd.Env = append(os.Environ(), "GODEBUG=inittrace=1")
	text, err := cmd.CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("%w\n%s", err, text)
	}
	s := &Startup{}
	for line := range strings.Lines(string(text)) {
		if p, ok := parseInit(line); ok {
			s.Packages, s.TotalMs, s.Top = s.Packages+1, s.TotalMs+p.Ms, append(s.Top, p)
		}
	}
	slices.SortFunc(s.Top, func(a, b Package) int { return cmp.Compare(b.Ms, a.Ms) })
	s.Top = s.Top[:min(startupTop, len(s.Top))]
	return s, nil
}

// parseInit reads a line "init PACKAGE @1.2 ms, 0.34 ms clock, …".
func parseInit(line string) (p Package, ok bool) {
	var at float64
	n, _ := fmt.Sscanf(line, "init %s @%f ms, %f ms clock", &p.Name, &at, &p.Ms) // A line of another kind has fewer.
	return p, n == 3
}
