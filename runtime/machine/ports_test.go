package machine

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prometheus/procfs"
	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/podspec"
)

// TestListeners: of the kernel's tables, for each protocol and family, the sockets count that
// take what comes. A table may be missing.
func TestListeners(t *testing.T) {
	proc := t.TempDir()
	line := func(address, state string) string {
		return "   0: " + address + " " + strings.Repeat("0", len(strings.Split(address, ":")[0])) + ":0000 " + state +
			" 00000000:00000000 00:00000000 00000000     0        0 17 2 0000000000000000 0\n"
	}
	for name, lines := range map[string]string{
		"tcp":  line("0100007F:1F90", "0A") + line("00000000:0016", "0A") + line("0100007F:1F91", "01"),
		"tcp6": line("00000000000000000000000001000000:0050", "0A") + line("0000000000000000FFFF00000100007F:0051", "0A"),
		"udp":  line("00000000:0035", "07") + line("00000000:0036", "01"),
	} {
		file := filepath.Join(proc, "net", name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte("sl local_address\n"+lines), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	fs, err := procfs.NewFS(proc)
	if err != nil {
		t.Fatal(err)
	}
	for protocol, want := range map[v1.Protocol]string{
		v1.ProtocolTCP:  "[127.0.0.1:8080 0.0.0.0:22 [::1]:80 127.0.0.1:81]",
		v1.ProtocolUDP:  "[0.0.0.0:53]",
		v1.ProtocolSCTP: "[]",
	} {
		if got := fmt.Sprint(listeners(fs, protocol)); got != want {
			t.Errorf("%s: %s, want %s", protocol, got, want)
		}
	}
}

// TestListens sees a port that this test listens on, and no other.
func TestListens(t *testing.T) {
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	port := podspec.Port{Protocol: v1.ProtocolTCP, Number: int32(l.Addr().(*net.TCPAddr).Port)}
	if !Listens(port) {
		t.Errorf("nobody listens on %s", port)
	}
	if port.HostIP = "127.0.0.2"; Listens(port) {
		t.Errorf("somebody listens on %s", port)
	}
	if port.HostIP, port.Protocol = "", v1.ProtocolUDP; Listens(port) {
		t.Errorf("somebody listens on %s", port)
	}
}
