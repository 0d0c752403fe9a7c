package machine

import (
	"cmp"
	"math"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// family is IPv4 or IPv6.
type family struct {
	// routes is the kernel's table of routes, parse reads a line of it.
	routes string
	parse  func(fields []string) (defaultRoute, bool)
	has    func(netip.Addr) bool
}

// families are in the order in which a kubelet prefers them.
func families() []family {
	return []family{
		{"proc/net/route", parseRoute4, netip.Addr.Is4},
		{"proc/net/ipv6_route", parseRoute6, netip.Addr.Is6},
	}
}

// defaultRoute is a route to everywhere.
type defaultRoute struct {
	iface  string
	metric uint64
}

// The flags of a route that can be taken, and of one that refuses what goes there.
const (
	routeUp     = 0x1
	routeReject = 0x200
)

// hostIPs are the machine's addresses, one of each family as a kubelet has them: those of
// the interfaces with the default routes. All others belong to bridges of pods, to tunnels
// or to nobody who could be asked by them. Only a machine without any default route is
// known by the first address it has.
func hostIPs(read func(path string) []byte, addresses func(iface string) []netip.Addr) []string {
	var ifaces, ips []string
	var lacking []family
	for _, f := range families() {
		own := f.interfaces(read(f.routes))
		ifaces = append(ifaces, own...)
		if ip, ok := f.first(own, addresses); ok {
			ips = append(ips, ip)
		} else {
			lacking = append(lacking, f)
		}
	}
	if len(ips) == 0 {
		ifaces = append(ifaces, "")
	}
	for _, f := range lacking {
		if ip, ok := f.first(ifaces, addresses); ok {
			ips = append(ips, ip)
		}
	}
	return ips
}

// interfaces are those with default routes, the best first.
func (f *family) interfaces(table []byte) []string {
	var routes []defaultRoute
	for line := range strings.Lines(string(table)) {
		if r, ok := f.parse(strings.Fields(line)); ok {
			routes = append(routes, r)
		}
	}
	slices.SortStableFunc(routes, func(a, b defaultRoute) int { return cmp.Compare(a.metric, b.metric) })
	names := make([]string, 0, len(routes))
	for _, r := range routes {
		names = append(names, r.iface)
	}
	return names
}

// first is the first address that others can reach.
func (f *family) first(ifaces []string, addresses func(iface string) []netip.Addr) (string, bool) {
	for _, name := range ifaces {
		for _, ip := range addresses(name) {
			if ip.IsGlobalUnicast() && f.has(ip) {
				return ip.String(), true
			}
		}
	}
	return "", false
}

// parseRoute4 reads a line of /proc/net/route: interface, destination, gateway, flags,
// two counters, metric, mask.
func parseRoute4(fields []string) (defaultRoute, bool) {
	if len(fields) < 8 || fields[1] != "00000000" || fields[7] != "00000000" || !usable(fields[3]) {
		return defaultRoute{}, false
	}
	return defaultRoute{iface: fields[0], metric: number(fields[6], 10)}, true
}

// parseRoute6 reads a line of /proc/net/ipv6_route: destination, its prefix, source, its
// prefix, gateway, metric, two counters, flags, interface.
func parseRoute6(fields []string) (defaultRoute, bool) {
	if len(fields) < 10 || fields[1] != "00" || !usable(fields[8]) {
		return defaultRoute{}, false
	}
	return defaultRoute{iface: fields[9], metric: number(fields[5], 16)}, true
}

func usable(flags string) bool {
	value, err := strconv.ParseUint(flags, 16, 64)
	return err == nil && value&routeUp != 0 && value&routeReject == 0
}

// number reads a metric; the last one is for what cannot be read.
func number(text string, base int) uint64 {
	if value, err := strconv.ParseUint(text, base, 64); err == nil {
		return value
	}
	return math.MaxUint64
}

// addressesOf are the addresses of an interface, or of all without a name.
func addressesOf(iface string) []netip.Addr {
	all, err := net.InterfaceAddrs()
	if iface != "" {
		all, err = interfaceAddrs(iface)
	}
	if err != nil {
		return nil
	}
	var ips []netip.Addr
	for _, addr := range all {
		if prefix, err := netip.ParsePrefix(addr.String()); err == nil {
			ips = append(ips, prefix.Addr().Unmap())
		}
	}
	return ips
}

func interfaceAddrs(name string) ([]net.Addr, error) {
	iface, err := net.InterfaceByName(name)
	if err != nil {
		return nil, err
	}
	return iface.Addrs()
}
