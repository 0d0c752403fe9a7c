package config

import (
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/machine"
)

// reservedFlag names the ports of the node that no pod or Service can have.
const reservedFlag = "reserved-ports"

// reservedDefault are the ports by which a machine is reached and gets its address: SSH, and the clients of DHCP. Their programs may
// start later, or open the port only for a moment.
const reservedDefault = "22/TCP,68/UDP,546/UDP"

// ReservedPorts are the ports of the node that no pod or Service can have: those of --reserved-ports, and the one on which the
// configuration makes the agent listen.
func (f *Flags) ReservedPorts() []machine.Reserved {
	reserved := make([]machine.Reserved, 0, len(f.reserved)+1)
	for _, p := range f.reserved {
		reserved = append(reserved, machine.Reserved{Port: p, For: "the machine itself (--" + reservedFlag + ")"})
	}
	_, text, err := net.SplitHostPort(f.Settings["agent.listen"].Value)
	if number, parsed := strconv.ParseUint(text, 10, 16); err == nil && parsed == nil && number > 0 {
		port := podspec.Port{Protocol: v1.ProtocolTCP, Number: int32(number)} //nolint:gosec // 16 bits
		reserved = append(reserved, machine.Reserved{Port: port, For: "podctl agent (listen)"})
	}
	return reserved
}

// reservedFlagOf is the flag that fills a list, which has the default now.
func reservedFlagOf(list *[]podspec.Port) *ports {
	p := &ports{list}
	// The default is a list.
	_ = p.Set(reservedDefault)
	return p
}

// ports is a list of ports, such as 22/TCP,68/UDP.
type ports struct{ list *[]podspec.Port }

// Type names the flag's kind of value in the help.
func (*ports) Type() string { return "ports" }

// String is the list.
func (p *ports) String() string {
	if p.list == nil {
		return ""
	}
	texts := make([]string, 0, len(*p.list))
	for _, port := range *p.list {
		texts = append(texts, port.String())
	}
	return strings.Join(texts, ",")
}

// Set takes another list in the place of the one before.
func (p *ports) Set(text string) error {
	list := []podspec.Port{}
	for one := range strings.SplitSeq(text, ",") {
		if one = strings.TrimSpace(one); one == "" {
			continue
		}
		number, protocol, found := strings.Cut(one, "/")
		port := podspec.Port{Protocol: v1.Protocol(strings.ToUpper(protocol))}
		if !found {
			port.Protocol = v1.ProtocolTCP
		}
		n, err := strconv.ParseUint(number, 10, 16)
		known := []v1.Protocol{v1.ProtocolTCP, v1.ProtocolUDP, v1.ProtocolSCTP}
		if err != nil || n == 0 || !slices.Contains(known, port.Protocol) {
			return fmt.Errorf("%q is not a port such as 22, 22/TCP or 68/UDP", one)
		}
		port.Number = int32(n) //nolint:gosec // 16 bits
		list = append(list, port)
	}
	*p.list = list
	return nil
}
