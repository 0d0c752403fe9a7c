package podlogs

import (
	"path/filepath"
	"testing"
	"time"
)

func TestRotatedLogIsNamedByTheTime(t *testing.T) {
	at := time.Date(2026, 3, 1, 13, 30, 15, 0, time.FixedZone("", 3600))
	if got, want := RotatedLog("/l/0.log", at), "/l/0.log.20260301-123015"; got != want {
		t.Errorf("RotatedLog = %s, want %s", got, want)
	}
	if f, ok := parseLogName(filepath.Base(RotatedLog("/l/3.log", at))); !ok || f.attempt != 3 {
		t.Errorf("a rotated log is not recognised: %+v", f)
	}
}
