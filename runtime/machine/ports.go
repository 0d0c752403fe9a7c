package machine

import (
	"net/netip"
	"slices"

	"github.com/prometheus/procfs"
	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/podspec"
)

// Listens reports whether some process of the node's own network has the port.
func Listens(port podspec.Port) bool {
	fs, err := procfs.NewDefaultFS()
	return err == nil && slices.ContainsFunc(listeners(fs, port.Protocol), func(l netip.AddrPort) bool {
		return int32(l.Port()) == port.Number && (port.Everywhere() || l.Addr().IsUnspecified() || l.Addr().String() == port.HostIP)
	})
}

// The states of a socket in /proc/net that stand for one that takes what comes.
const (
	tcpListen = 0x0A
	udpOpen   = 0x07
)

// listeners are the addresses on which sockets take what comes. A table that cannot be read,
// as there may be no IPv6, has none.
func listeners(fs procfs.FS, protocol v1.Protocol) []netip.AddrPort {
	var sockets procfs.NetIPSocket
	var open uint64
	switch protocol {
	case v1.ProtocolTCP:
		four, _ := fs.NetTCP()
		six, _ := fs.NetTCP6()
		sockets, open = procfs.NetIPSocket(slices.Concat(four, six)), tcpListen
	case v1.ProtocolUDP:
		four, _ := fs.NetUDP()
		six, _ := fs.NetUDP6()
		sockets, open = procfs.NetIPSocket(slices.Concat(four, six)), udpOpen
	case v1.ProtocolSCTP:
	}
	var found []netip.AddrPort
	for _, s := range sockets {
		if ip, ok := netip.AddrFromSlice(s.LocalAddr); ok && s.St == open {
			found = append(found, netip.AddrPortFrom(ip.Unmap(), uint16(s.LocalPort)))
		}
	}
	return found
}
