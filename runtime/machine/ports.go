package machine

import (
	"bufio"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/procfs"
	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/podspec"
)

// Reserved is a port of the node that no pod or Service can use, even if no process listens on it now.
type Reserved struct {
	podspec.Port
	// For names the program or setting that reserves the port.
	For string
}

// Owner returns the program or setting that has a port of the node, or an empty string.
func Owner(port podspec.Port, reserved []Reserved) string {
	for _, r := range reserved {
		if r.Collides(port) {
			return r.For
		}
	}
	if slices.ContainsFunc(sockets(procfs.DefaultMountPoint, port.Protocol), port.Collides) {
		return "a process of this machine"
	}
	return ""
}

// States of a socket in /proc/net that receives packets from new clients. A connected UDP socket is listed as
// established. The kernel delivers packets of its peer to it, which a published port would intercept.
const (
	listening      = 0x0A
	udpUnconnected = 0x07
	udpConnected   = 0x01
)

// sockets returns the ports on which processes receive packets. It ignores a table that cannot be read, for example
// without IPv6.
func sockets(proc string, protocol v1.Protocol) []podspec.Port {
	fs, err := procfs.NewFS(proc)
	if err != nil {
		return nil
	}
	var found procfs.NetIPSocket
	states := []uint64{listening}
	switch protocol {
	case v1.ProtocolTCP:
		four, _ := fs.NetTCP()
		six, _ := fs.NetTCP6()
		found = procfs.NetIPSocket(slices.Concat(four, six))
	case v1.ProtocolUDP:
		four, _ := fs.NetUDP()
		six, _ := fs.NetUDP6()
		found, states = procfs.NetIPSocket(slices.Concat(four, six)), []uint64{udpUnconnected, udpConnected}
	case v1.ProtocolSCTP:
		return sctpSockets(filepath.Join(proc, "net", "sctp", "eps"))
	}
	var ports []podspec.Port
	for _, s := range found {
		if ip, ok := netip.AddrFromSlice(s.LocalAddr); ok && slices.Contains(states, s.St) {
			ports = append(ports, podspec.Port{
				Protocol: protocol,
				Number:   int32(s.LocalPort), // 16 bits
				HostIP:   ip.Unmap().String(),
			})
		}
	}
	return ports
}

// Columns of an endpoint in /proc/net/sctp/eps. All following columns are its addresses.
const (
	sctpState     = 3
	sctpPort      = 5
	sctpAddresses = 8
)

// maxTable limits the bytes read from a table.
const maxTable = 4 << 20

// sctpSockets returns the ports of endpoints that accept associations. A socket can have several addresses.
func sctpSockets(table string) []podspec.Port {
	f, err := os.Open(table)
	if err != nil {
		return nil // The kernel has no SCTP, or its module is not loaded.
	}
	defer f.Close() //nolint:errcheck // Nothing was written.
	var ports []podspec.Port
	for lines := bufio.NewScanner(io.LimitReader(f, maxTable)); lines.Scan(); {
		columns := strings.Fields(lines.Text())
		if len(columns) <= sctpAddresses || columns[sctpState] != strconv.Itoa(listening) {
			continue
		}
		number, err := strconv.ParseUint(columns[sctpPort], 10, 16)
		if err != nil {
			continue
		}
		for _, ip := range columns[sctpAddresses:] {
			ports = append(ports, podspec.Port{
				Protocol: v1.ProtocolSCTP,
				Number:   int32(number), // 16 bits
				HostIP:   ip,
			})
		}
	}
	return ports
}
