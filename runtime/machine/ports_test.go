package machine

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/podspec"
)

// TestSockets checks that sockets that receive packets count, for each protocol and family. A table may be missing.
func TestSockets(t *testing.T) {
	proc := t.TempDir()
	line := func(address, state string) string {
		return "   0: " + address + " " + strings.Repeat("0", len(strings.Split(address, ":")[0])) + ":0000 " + state +
			" 00000000:00000000 00:00000000 00000000     0        0 17 2 0000000000000000 0\n"
	}
	for name, lines := range map[string]string{
		"tcp":  line("0100007F:1F90", "0A") + line("00000000:0016", "0A") + line("0100007F:1F91", "01"),
		"tcp6": line("00000000000000000000000001000000:0050", "0A") + line("0000000000000000FFFF00000100007F:0051", "0A"),
		"udp":  line("00000000:0035", "07") + line("0100007F:0036", "01"),
		"sctp/eps": "ffff8881 ffff8882 2 10 29 5060 0 2057 192.0.2.1 198.51.100.1\n" +
			"ffff8883 ffff8884 2 10 29 5061 0 2058 2001:0db8:0000:0000:0000:0000:0000:0001\n" +
			"ffff8885 ffff8886 0 7 29 40000 0 2059 0.0.0.0\n" + "short 2 10\n",
	} {
		file := filepath.Join(proc, "net", name)
		if err := errors.Join(
			os.MkdirAll(filepath.Dir(file), 0o700),
			os.WriteFile(file, []byte("sl local_address\n"+lines), 0o600),
		); err != nil {
			t.Fatal(err)
		}
	}
	for protocol, want := range map[v1.Protocol]string{
		v1.ProtocolTCP:  "[127.0.0.1:8080/TCP 0.0.0.0:22/TCP ::1:80/TCP 127.0.0.1:81/TCP]",
		v1.ProtocolUDP:  "[0.0.0.0:53/UDP 127.0.0.1:54/UDP]",
		v1.ProtocolSCTP: "[192.0.2.1:5060/SCTP 198.51.100.1:5060/SCTP 2001:0db8:0000:0000:0000:0000:0000:0001:5061/SCTP]",
	} {
		if got := fmt.Sprint(sockets(proc, protocol)); got != want {
			t.Errorf("%s: %s, want %s", protocol, got, want)
		}
	}
}

// TestOwner checks that a port belongs to the process with a socket for it, at that address or at all addresses. A
// reserved port belongs to its owner.
func TestOwner(t *testing.T) {
	tcp, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tcp.Close() })
	udp, err := (&net.Dialer{}).DialContext(t.Context(), "udp4", "127.0.0.1:9")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = udp.Close() })
	reserved := []Reserved{{podspec.Port{Protocol: v1.ProtocolTCP, Number: 1}, "SSH"}}
	listens, connected := int32(tcp.Addr().(*net.TCPAddr).Port), int32(udp.LocalAddr().(*net.UDPAddr).Port)
	const process = "a process of this machine"
	for port, want := range map[podspec.Port]string{
		{Protocol: v1.ProtocolTCP, Number: listens}:                             process,
		{Protocol: v1.ProtocolTCP, Number: listens, HostIP: "0.0.0.0"}:          process,
		{Protocol: v1.ProtocolTCP, Number: listens, HostIP: "0:0:0:0:0:0:0:0"}:  process,
		{Protocol: v1.ProtocolTCP, Number: listens, HostIP: "::ffff:127.0.0.1"}: process,
		{Protocol: v1.ProtocolTCP, Number: listens, HostIP: "127.0.0.2"}:        "",
		{Protocol: v1.ProtocolSCTP, Number: listens}:                            "",
		{Protocol: v1.ProtocolUDP, Number: connected}:                           process,
		{Protocol: v1.ProtocolTCP, Number: 1, HostIP: "127.0.0.1"}:              "SSH",
		{Protocol: v1.ProtocolUDP, Number: 1}:                                   "",
	} {
		if got := Owner(port, reserved); got != want {
			t.Errorf("%s: %q, want %q", port, got, want)
		}
	}
}
