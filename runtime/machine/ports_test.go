package machine

import (
	"net"
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/podspec"
)

func TestParseSocket(t *testing.T) {
	for text, want := range map[string]string{
		"0100007F:1F90":                         "127.0.0.1:8080",
		"00000000:0016":                         "0.0.0.0:22",
		"00000000000000000000000001000000:0050": "[::1]:80",
		"0000000000000000FFFF00000100007F:0050": "[::ffff:127.0.0.1]:80",
	} {
		if got, err := parseSocket(text); err != nil || got.String() != want {
			t.Errorf("%s: %v %v, want %s", text, got, err, want)
		}
	}
	for _, text := range []string{"", "0100007F", "xx:1", "01:1", "0100007F:zz"} {
		if got, err := parseSocket(text); err == nil {
			t.Errorf("%q is read as %v", text, got)
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
