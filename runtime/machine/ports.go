package machine

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/podspec"
)

// Listens tells that some process of the node's own network has the port.
func Listens(port podspec.Port) bool {
	files := map[v1.Protocol][]string{
		v1.ProtocolTCP: {"/proc/net/tcp", "/proc/net/tcp6"},
		v1.ProtocolUDP: {"/proc/net/udp", "/proc/net/udp6"},
	}[port.Protocol]
	return slices.ContainsFunc(files, func(file string) bool {
		text, err := os.ReadFile(file)
		return err == nil && slices.ContainsFunc(listeners(text, port.Protocol), func(l netip.AddrPort) bool {
			address := l.Addr().Unmap()
			return int32(l.Port()) == port.Number && (port.Everywhere() || address.IsUnspecified() || address.String() == port.HostIP)
		})
	})
}

// The states of a socket in /proc/net that stand for one that takes what comes.
const (
	tcpListen = "0A"
	udpOpen   = "07"
)

// listeners reads the sockets that take connections from a table of /proc/net.
func listeners(table []byte, protocol v1.Protocol) []netip.AddrPort {
	want := tcpListen
	if protocol == v1.ProtocolUDP {
		want = udpOpen
	}
	var found []netip.AddrPort
	lines := bufio.NewScanner(bytes.NewReader(table))
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) < 4 || fields[3] != want {
			continue
		}
		if one, err := parseSocket(fields[1]); err == nil {
			found = append(found, one)
		}
	}
	return found
}

// parseSocket reads an address as the kernel writes it: words of four bytes, each
// in the machine's order, and the port.
func parseSocket(text string) (netip.AddrPort, error) {
	address, port, ok := strings.Cut(text, ":")
	raw, err := hex.DecodeString(address)
	if !ok || err != nil || len(raw)%4 != 0 {
		return netip.AddrPort{}, fmt.Errorf("%q is no address", text)
	}
	for word := range slices.Chunk(raw, 4) {
		slices.Reverse(word)
	}
	ip, ok := netip.AddrFromSlice(raw)
	number, err := strconv.ParseUint(port, 16, 16)
	if !ok || err != nil {
		return netip.AddrPort{}, fmt.Errorf("%q is no address", text)
	}
	return netip.AddrPortFrom(ip, uint16(number)), nil
}
