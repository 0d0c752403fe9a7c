package kubernetes

import (
	"archive/tar"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestMachinePowerLoss kills an emulated machine at random moments.
func TestMachinePowerLoss(t *testing.T) {
	n, err := given()
	if err != nil {
		t.Fatal(err)
	}
	api := (&node{needed: n}).startServer(t)
	loseOften(t, api, 5*time.Minute, func() machine {
		m := newVM(t, api, 1024)
		m.run(t, "podctl image tag "+firstImage+" "+secondImage+"\n"+
			"cat >/etc/podctl/pods/static.yaml <<'END'\n"+lossStatic+"END\nsync")
		return m
	})
}

// lose ends the machine as a loss of power does.
func (m *vm) lose(*testing.T) {
	m.qemu.cmd.Process.Kill() //nolint:errcheck // it may have ended
	<-m.qemu.ended
	m.qemu.cmd = nil
}

// records reads the copy that a unit made before podctl started.
func (m *vm) records(t *testing.T) map[string]string {
	t.Helper()
	m.run(t, "cp /run/records.tar /mnt/share/records.tar")
	found := map[string]string{}
	archive := tar.NewReader(strings.NewReader(read(t, filepath.Join(m.share, "records.tar"))))
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return found
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		if header.Typeflag == tar.TypeReg {
			found[strings.TrimPrefix(header.Name, "./")] = string(text)
		}
	}
}

// problems returns failed units, units that were started more than once, and lines of the journal about damage.
func (m *vm) problems(t *testing.T) string {
	t.Helper()
	return strings.TrimSpace(m.run(t, `systemctl --failed --no-legend --plain
for unit in podctl-agent podctl-containerd; do
	restarts=$(systemctl show -P NRestarts $unit.service)
	[ "$restarts" = 0 ] || echo "$unit was restarted $restarts times"
done
journalctl --no-pager -b -u podctl-agent -u podctl-containerd | grep -iE 'damaged|corrupt|cannot be decoded' || true`))
}
