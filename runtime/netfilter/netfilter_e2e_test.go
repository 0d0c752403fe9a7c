//go:build e2e

package netfilter

import (
	"context"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/runtime/service"
)

// inOwnNetwork runs a test again in its own network namespace, as root.
func inOwnNetwork(t *testing.T) {
	t.Helper()
	const inside = "PODCTL_TEST_OWN_NETWORK"
	if os.Getenv(inside) != "" {
		return
	}
	cmd := exec.CommandContext(t.Context(), "unshare", "-n", os.Args[0], "-test.run", "^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), inside+"=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.SkipNow() // The test has passed inside.
}

type memory struct{ names []string }

func (m *memory) Interfaces() ([]string, error) { return m.names, nil }

func (m *memory) Replace(names []string) error {
	m.names = names
	return nil
}

func command(t *testing.T, line string) string {
	t.Helper()
	words := strings.Fields(line)
	out, err := exec.CommandContext(t.Context(), words[0], words[1:]...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", line, err, out)
	}
	return string(out)
}

func write(t *testing.T, name string, r Rules, m *memory) {
	t.Helper()
	if err := (Kernel{}).Write(name, r, m); err != nil {
		t.Fatal(err)
	}
}

func guardIs(t *testing.T, when string, wanted bool) { //nolint:revive // the value to compare with
	t.Helper()
	if rules := command(t, "nft list ruleset"); strings.Contains(rules, "ip daddr 127.0.0.0/8 drop") != wanted ||
		strings.Contains(rules, "ip saddr 127.0.0.0/8 drop") != wanted {
		t.Errorf("%s: the guard is there: %t\n%s", when, !wanted, rules)
	}
}

// TestGuardOfLoopback checks that the guard stays while an interface has route_localnet, also after a flush, and is
// removed with the last published port.
func TestGuardOfLoopback(t *testing.T) {
	inOwnNetwork(t)
	for _, line := range []string{
		"ip link add cni0 type bridge", "ip link set cni0 up", "ip addr add 10.1.2.1/24 dev cni0",
		"ip link add other0 type bridge",
	} {
		command(t, line)
	}
	m, pods := &memory{}, []netip.Addr{netip.MustParseAddr("10.1.2.3")}
	route := service.Route{
		Protocol:  v1.ProtocolTCP,
		Port:      80,
		Addresses: []netip.Addr{netip.MustParseAddr("10.96.0.9")},
		Endpoints: []netip.AddrPort{netip.MustParseAddrPort("10.1.2.3:8080")},
	}
	published := route
	published.NodePorts = []uint16{31234}
	private, public := Rules{Routes: []service.Route{route}, Pods: pods}, Rules{Routes: []service.Route{published}, Pods: pods}
	const name, neighbour = "podctl-00000001", "podctl-00000002"

	write(t, name, private, m)
	guardIs(t, "without published ports", false)
	write(t, name, public, m)
	guardIs(t, "with a published port", true)
	if !localnet("cni0") || localnet("other0") || !slices.Equal(m.names, []string{"cni0"}) {
		t.Errorf("route_localnet: cni0 %t, other0 %t, recorded %v", localnet("cni0"), localnet("other0"), m.names)
	}
	command(t, "nft flush ruleset")
	write(t, name, public, m)
	guardIs(t, "after a flush", true)
	if !slices.Equal(m.names, []string{"cni0"}) {
		t.Errorf("recorded %v", m.names)
	}

	command(t, "nft insert rule ip "+name+"-guard guard accept")
	write(t, name, public, m)
	if rules := command(t, "nft list ruleset"); strings.Contains(rules, "\t\taccept") {
		t.Errorf("a rule that opens the guard stays:\n%s", rules)
	}

	withHostPorts := private
	withHostPorts.HostPorts = true
	command(t, "nft flush ruleset")
	write(t, name, withHostPorts, m)
	guardIs(t, "after a flush, with a hostPort and no published port", true)
	write(t, neighbour, public, m)
	write(t, name, Rules{}, m)
	guardIs(t, "with the published port of another state directory", true)
	if !localnet("cni0") {
		t.Error("route_localnet is reset although another state directory publishes a port")
	}
	write(t, neighbour, private, m)
	guardIs(t, "after the last published port", false)
	if localnet("cni0") || len(m.names) != 0 {
		t.Errorf("route_localnet stays, recorded %v", m.names)
	}
	if rules := command(t, "nft list tables"); strings.TrimSpace(rules) != "table ip "+neighbour {
		t.Error(rules)
	}

	// The CNI plugin portmap opens an interface for hostPorts. podctl guards it, and does not reset it.
	if err := setLocalnet([]string{"cni0"}, "1"); err != nil {
		t.Fatal(err)
	}
	write(t, neighbour, Rules{}, m)
	guardIs(t, "with an interface that portmap opened", true)
	if !localnet("cni0") {
		t.Error("podctl reset a value that it had not set")
	}
	command(t, "ip link del cni0")
	write(t, neighbour, Rules{}, m)
	if rules := command(t, "nft list tables"); rules != "" {
		t.Error("left:", rules)
	}
}

// TestWatch checks that changes of other programs are reported, and not podctl's own.
func TestWatch(t *testing.T) {
	inOwnNetwork(t)
	ctx, cancel := context.WithCancel(t.Context())
	removed, ended := make(chan struct{}, 16), make(chan error, 1)
	go func() { ended <- (Kernel{}).Watch(ctx, func() { removed <- struct{}{} }) }()
	m := &memory{}
	route := service.Route{Protocol: v1.ProtocolTCP, Port: 80, Addresses: []netip.Addr{netip.MustParseAddr("10.96.0.9")}}
	// The watch has started once a removal is seen.
	for begun := false; !begun; {
		write(t, "podctl-00000001", Rules{Routes: []service.Route{route}}, m)
		command(t, "nft flush ruleset")
		select {
		case <-removed:
			begun = true
		default:
		}
	}
	write(t, "podctl-00000001", Rules{Routes: []service.Route{route}}, m)
	write(t, "podctl-00000001", Rules{Routes: []service.Route{route}}, m)
	command(t, "nft flush table ip podctl-00000001")
	<-removed
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if n := len(removed); n > 8 {
		t.Errorf("%d more removals are reported", n)
	}
}
