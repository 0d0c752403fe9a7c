package main

import (
	"strings"
	"testing"
)

// TestDraw checks that colours are drawn, that other sequences are ignored, and that text is unchanged.
func TestDraw(t *testing.T) {
	var b strings.Builder
	if err := draw(strings.NewReader("\x1b[1m$ podctl\x1b[0m plan\x1b[K\n\x1b[32m  + <a>\x1b[0m &\n"), &b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`<tspan font-weight="bold">$ podctl</tspan><tspan> plan</tspan></text>`,
		`<tspan fill="#98c379">  + &lt;a&gt;</tspan><tspan> &amp;</tspan></text>`,
	} {
		if !strings.Contains(strings.ReplaceAll(b.String(), "\u00a0", " "), want) {
			t.Errorf("no %s in\n%s", want, b.String())
		}
	}
	if strings.Contains(b.String(), "  ") {
		t.Error("a browser would collapse spaces")
	}
	if strings.Contains(b.String(), "\x1b") {
		t.Error("an escape stays")
	}
}
