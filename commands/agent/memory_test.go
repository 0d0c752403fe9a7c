package agent

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// TestCleanMappings: neither what may be written, nor what is not as the file has it, nor another file's.
func TestCleanMappings(t *testing.T) {
	smaps := `00400000-01445000 r-xp 00000000 fe:00 123                        /usr/bin/podctl
Rss:               14000 kB
Anonymous:             0 kB
VmFlags: rd ex mr mw me
01445000-024f2000 r--p 01045000 fe:00 123                        /usr/bin/podctl
Anonymous:             0 kB
024f2000-0250f000 rw-p 020f2000 fe:00 123                        /usr/bin/podctl
Anonymous:             0 kB
02510000-02520000 r--p 020f2000 fe:00 123                        /usr/bin/podctl
Anonymous:             4 kB
c000000000-c000400000 rw-p 00000000 00:00 0
Anonymous:             0 kB
7f0000000000-7f0000001000 r--p 00000000 fe:00 7                  /usr/lib/other
Anonymous:             0 kB
`
	want := []mapping{{0x400000, 0x1445000}, {0x1445000, 0x24f2000}}
	if got := cleanMappings(strings.NewReader(smaps), "/usr/bin/podctl"); !slices.Equal(got, want) {
		t.Errorf("got %x, want %x", got, want)
	}
}

// TestGiveBack: what the process uses of its binary is less afterwards, and it goes on.
func TestGiveBack(t *testing.T) {
	before := fileKiB(t)
	giveBack()
	if after := fileKiB(t); after >= before {
		t.Errorf("%s kB of files are mapped, %s before", after, before)
	}
}

// fileKiB is RssFile of /proc/self/status, padded so that it compares as text.
func fileKiB(t *testing.T) string {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(status), "RssFile:")
	size, _, _ := strings.Cut(rest, " kB")
	return size
}
