package runtime

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

	"github.com/podctl/podctl/runtime/plan"
)

// takenPorts are those ports of the node that a pod wants to publish and that a
// process of the node, or another pod that podctl applied, has. A pod that
// publishes none costs nothing.
func (e *Engine) takenPorts(pod *v1.Pod) map[string]string {
	wanted := plan.PublishedPorts(pod)
	if len(wanted) == 0 {
		return nil
	}
	others := e.publishedByOthers(pod)
	taken := map[string]string{}
	for _, port := range wanted {
		for _, other := range others {
			if collide(port, other.Port) {
				taken[port.String()] = "pod " + other.pod
			}
		}
		if listens(port) {
			taken[port.String()] = "a process of this machine"
		}
	}
	return taken
}

type foreignPort struct {
	plan.Port
	pod string
}

// publishedByOthers lists the ports of the pods that podctl applied and that have
// not finished.
func (e *Engine) publishedByOthers(pod *v1.Pod) []foreignPort {
	applied, _, err := Applied(e.layout)
	if err != nil {
		return nil
	}
	var ports []foreignPort
	for _, a := range applied {
		if a.Desired.Pod.UID == pod.UID || a.Journal.Completion != nil || a.Journal.Left == nil || a.Journal.Left.Sandbox == "" {
			continue
		}
		for _, p := range plan.PublishedPorts(a.Desired.Pod) {
			ports = append(ports, foreignPort{p, plan.RefOf(a.Desired.Pod).String()})
		}
	}
	return ports
}

// collide tells that two ports cannot both be published: on one address, or on
// all addresses.
func collide(a, b plan.Port) bool {
	return a.Number == b.Number && a.Protocol == b.Protocol && (anyAddress(a.HostIP) || anyAddress(b.HostIP) || a.HostIP == b.HostIP)
}

func anyAddress(ip string) bool { return ip == "" || ip == "0.0.0.0" || ip == "::" }

// listens tells that some process of the node's own network has the port.
func listens(port plan.Port) bool {
	files := map[v1.Protocol][]string{
		v1.ProtocolTCP: {"/proc/net/tcp", "/proc/net/tcp6"},
		v1.ProtocolUDP: {"/proc/net/udp", "/proc/net/udp6"},
	}[port.Protocol]
	return slices.ContainsFunc(files, func(file string) bool {
		text, err := os.ReadFile(file)
		return err == nil && slices.ContainsFunc(listeners(text, port.Protocol), func(l netip.AddrPort) bool {
			address := l.Addr().Unmap()
			return int32(l.Port()) == port.Number && (anyAddress(port.HostIP) || address.IsUnspecified() || address.String() == port.HostIP)
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
