package netfilter

import (
	"net/netip"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
)

// family is IPv4 or IPv6, with the names that netfilter uses and the positions of the addresses in packets.
type family struct {
	word  string
	table nftables.TableFamily
	key   nftables.SetDatatype
	nat   uint32
	// source and destination are the offsets of the addresses in the header, and size is the length of an address, in
	// bytes.
	source, destination, size uint32
	// refused is the ICMP code of a port without a listener.
	refused uint8
	has     func(netip.Addr) bool
}

func ipv4() family {
	return family{
		word: "ip", table: nftables.TableFamilyIPv4, key: nftables.TypeIPAddr, nat: unix.NFPROTO_IPV4,
		source: 12, destination: 16, size: 4, refused: 3, has: netip.Addr.Is4,
	}
}

func ipv6() family {
	return family{
		word: "ip6", table: nftables.TableFamilyIPv6, key: nftables.TypeIP6Addr, nat: unix.NFPROTO_IPV6,
		source: 8, destination: 24, size: 16, refused: 4, has: netip.Addr.Is6,
	}
}

// loadSource and loadDestination load an address of the packet.
func (f family) loadSource() expr.Any {
	return &expr.Payload{DestRegister: first, Base: expr.PayloadBaseNetworkHeader, Offset: f.source, Len: f.size}
}

func (f family) loadDestination() expr.Any {
	return &expr.Payload{DestRegister: first, Base: expr.PayloadBaseNetworkHeader, Offset: f.destination, Len: f.size}
}
