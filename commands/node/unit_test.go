package node

import (
	"os"
	"regexp"
	"testing"
	"time"
)

// TestUnitWaits: systemd ends a start of the private containerd only after podctl has given up and printed the reason.
func TestUnitWaits(t *testing.T) {
	text, err := os.ReadFile("../../docs/packaging/podctl-containerd.service")
	if err != nil {
		t.Fatal(err)
	}
	limit := regexp.MustCompile(`(?m)^TimeoutStartSec=(\d+m)in$`).FindSubmatch(text)
	if limit == nil {
		t.Fatal("TimeoutStartSec has no number of minutes")
	}
	if after, err := time.ParseDuration(string(limit[1])); err != nil || after < upTimeout+time.Minute {
		t.Errorf("systemd waits %s, %v, and podctl %s", after, err, upTimeout)
	}
}
