package machine

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Tables of a machine with a node's bridge, as written by its kernel.
const (
	routes4 = "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n" +
		"eth0\t00000000\t010200C0\t0003\t0\t0\t0\t00000000\t0\t0\t0\n" +
		"podctl0\t003F590A\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0\n" +
		"eth0\t000200C0\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0\n"
	routes6 = "fd000000000000000000000000000000 40 00000000000000000000000000000000 00 " +
		"00000000000000000000000000000000 00000100 00000001 00000000 00000001     eth0\n" +
		"00000000000000000000000000000000 00 00000000000000000000000000000000 00 " +
		"fd000000000000000000000000000001 00000400 00000002 00000000 00000003     eth0\n" +
		"00000000000000000000000000000001 80 00000000000000000000000000000000 00 " +
		"00000000000000000000000000000000 00000000 00000003 00000000 80200001       lo\n" +
		unreachable6
	unreachable6 = "00000000000000000000000000000000 00 00000000000000000000000000000000 00 " +
		"00000000000000000000000000000000 ffffffff 00000001 00000000 00200200       lo\n"
	// Two default routes, and one for half of all addresses.
	twoRoutes4 = "wg0\t00000000\t00000000\t0001\t0\t0\t0\t00000080\t0\t0\t0\n" +
		"wlan0\t00000000\t0100A8C0\t0003\t0\t0\t600\t00000000\t0\t0\t0\n" +
		"eth0\t00000000\t010200C0\t0003\t0\t0\t100\t00000000\t0\t0\t0\n"
)

// TestHostIPs checks that there is one address of each family, and none of a bridge.
func TestHostIPs(t *testing.T) {
	addresses := map[string][]string{
		"podctl0": {"10.89.63.1", "fe80::1", "fd01::1"},
		"lo":      {"127.0.0.1", "::1"},
		"eth0":    {"169.254.3.4", "192.0.2.2", "192.0.2.3", "fe80::2", "fd00::2"},
		"wlan0":   {"192.0.2.9"},
		"wg0":     {"10.1.1.1"},
	}
	addresses[""] = append(append(append([]string{}, addresses["lo"]...), addresses["podctl0"]...), addresses["eth0"]...)
	find := func(iface string) (ips []netip.Addr) {
		for _, text := range addresses[iface] {
			ips = append(ips, netip.MustParseAddr(text))
		}
		return ips
	}
	for name, c := range map[string]struct {
		four, six string
		want      []string
	}{
		"both":              {routes4, routes6, []string{"192.0.2.2", "fd00::2"}},
		"IPv4 alone":        {routes4, unreachable6, []string{"192.0.2.2", "fd00::2"}},
		"IPv6 alone":        {"", routes6, []string{"fd00::2", "192.0.2.2"}},
		"the best of two":   {twoRoutes4, "", []string{"192.0.2.2", "fd00::2"}},
		"without IPv6":      {"wlan0\t00000000\t0100A8C0\t0003\t0\t0\t600\t00000000\t0\t0\t0\n", unreachable6, []string{"192.0.2.9"}},
		"no route":          {"", unreachable6, []string{"10.89.63.1", "fd01::1"}},
		"an unknown device": {"gone0\t00000000\t0100A8C0\t0003\t0\t0\t0\t00000000\t0\t0\t0\n", "", []string{"10.89.63.1", "fd01::1"}},
		"invalid text":      {"a b\n\n", "x\n", []string{"10.89.63.1", "fd01::1"}},
	} {
		read := func(path string) []byte {
			return []byte(map[string]string{"proc/net/route": c.four, "proc/net/ipv6_route": c.six}[path])
		}
		if diff := cmp.Diff(c.want, hostIPs(read, find)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
