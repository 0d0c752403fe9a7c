package runtime

import (
	"net"
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/runtime/plan"
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
	port := plan.Port{Protocol: v1.ProtocolTCP, Number: int32(l.Addr().(*net.TCPAddr).Port)}
	if !listens(port) {
		t.Errorf("nobody listens on %s", port)
	}
	if port.HostIP = "127.0.0.2"; listens(port) {
		t.Errorf("somebody listens on %s", port)
	}
	if port.HostIP, port.Protocol = "", v1.ProtocolUDP; listens(port) {
		t.Errorf("somebody listens on %s", port)
	}
}

func TestCollide(t *testing.T) {
	web := plan.Port{Protocol: v1.ProtocolTCP, Number: 80}
	for name, c := range map[string]struct {
		other plan.Port
		want  bool
	}{
		"the same":            {web, true},
		"another number":      {plan.Port{Protocol: v1.ProtocolTCP, Number: 81}, false},
		"another protocol":    {plan.Port{Protocol: v1.ProtocolUDP, Number: 80}, false},
		"one address of many": {plan.Port{Protocol: v1.ProtocolTCP, Number: 80, HostIP: "10.0.0.1"}, true},
	} {
		if got := collide(web, c.other); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
	a, b := web, web
	a.HostIP, b.HostIP = "10.0.0.1", "10.0.0.2"
	if collide(a, b) {
		t.Error("two addresses collide")
	}
}
