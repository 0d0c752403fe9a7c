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
	// routes is the kernel's route table.
	routes string
	// zero holds the columns of a default route that are zero, by number: the destination and its mask.
	zero map[int]string
	// iface, flags and metric are column numbers. base is the base of the metric's number.
	iface, flags, metric, base int
	has                        func(netip.Addr) bool
}

// families are in the kubelet's order of preference.
func families() []family {
	const none = "00000000"
	return []family{
		{
			routes: "proc/net/route",
			zero:   map[int]string{1: none, 7: none},
			iface:  0,
			flags:  3,
			metric: 6,
			base:   10,
			has:    netip.Addr.Is4,
		},
		{
			routes: "proc/net/ipv6_route",
			zero:   map[int]string{1: "00"},
			iface:  9,
			flags:  8,
			metric: 5,
			base:   16,
			has:    netip.Addr.Is6,
		},
	}
}

// defaultRoute is a default route.
type defaultRoute struct {
	iface  string
	metric uint64
}

// Flags of a usable route, and of a route that rejects packets.
const (
	routeUp     = 0x1
	routeReject = 0x200
)

// hostIPs returns the machine's addresses, one of each family like a kubelet: those of the interfaces with default
// routes. Other addresses belong to bridges of pods or tunnels, or are not reachable for others. Without any default
// route, the machine's first address is used.
func hostIPs(read func(path string) []byte, addresses func(iface string) []netip.Addr) []string {
	var ifaces, ips []string
	var missing []family
	for _, f := range families() {
		own := f.interfaces(read(f.routes))
		ifaces = append(ifaces, own...)
		if ip, ok := f.first(own, addresses); ok {
			ips = append(ips, ip)
		} else {
			missing = append(missing, f)
		}
	}
	if len(ips) == 0 {
		ifaces = append(ifaces, "")
	}
	for _, f := range missing {
		if ip, ok := f.first(ifaces, addresses); ok {
			ips = append(ips, ip)
		}
	}
	return ips
}

// interfaces returns the interfaces with default routes, the best first.
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

// first returns the first address that other machines can reach.
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

// parse parses a line of the table. It returns false if the line is not a usable default route.
func (f *family) parse(columns []string) (defaultRoute, bool) {
	if len(columns) <= max(f.iface, 7) {
		return defaultRoute{}, false
	}
	for at, zero := range f.zero {
		if columns[at] != zero {
			return defaultRoute{}, false
		}
	}
	flags, err := strconv.ParseUint(columns[f.flags], 16, 64)
	metric, wrong := strconv.ParseUint(columns[f.metric], f.base, 64)
	if wrong != nil {
		metric = math.MaxUint64
	}
	usable := err == nil && flags&routeUp != 0 && flags&routeReject == 0
	return defaultRoute{iface: columns[f.iface], metric: metric}, usable
}

// addressesOf returns the addresses of an interface, or of all interfaces if the name is empty.
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
