package logfile

import (
	"bytes"
	"os"
	"strings"
	"testing"
)

// TestOneStream checks that a nil writer omits its stream, and that omitted lines do not count for the limit.
func TestOneStream(t *testing.T) {
	path, _ := logsOf(t)
	partial := strings.Replace(line("part"), " F ", " P ", 1)
	text := line("one") + partial + strings.ReplaceAll(line("two"), "stdout", "stderr") + line("three")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	limit := int64(6)
	var out bytes.Buffer
	opts := &Options{LimitBytes: &limit, Timestamps: false}
	if err := (Log{path}).Read(t.Context(), opts, nil, nil, &out); err != nil || out.String() != "two\n" {
		t.Errorf("stderr: %q %v", out.String(), err)
	}
	out.Reset()
	if err := (Log{path}).Read(t.Context(), &Options{Timestamps: true}, nil, nil, &out); err != nil ||
		!strings.HasSuffix(out.String(), "Z two\n") {
		t.Errorf("stderr with times: %q %v", out.String(), err)
	}
}
