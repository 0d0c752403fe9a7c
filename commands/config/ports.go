package config

import (
	"cmp"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/machine"
)

// reservedFlag lists the ports of the node that pods and Services must not use.
const reservedFlag = "reserved-ports"

// reservedDefault are the ports for SSH and for the DHCP clients. The programs behind them may start later, or open the
// port only for a moment.
const reservedDefault = "22/TCP,68/UDP,546/UDP"

// ReservedPorts returns the ports of --reserved-ports and those on which the agent and the server of a node listen,
// according to the configuration.
func (f *Flags) ReservedPorts() []machine.Reserved {
	reserved := make([]machine.Reserved, 0, len(f.reserved)+1)
	for _, p := range f.reserved {
		reserved = append(reserved, machine.Reserved{Port: p, For: "the machine itself (--" + reservedFlag + ")"})
	}
	add := func(text, setting string) {
		if number, err := strconv.ParseUint(text, 10, 16); err == nil && number > 0 {
			port := podspec.Port{Protocol: v1.ProtocolTCP, Number: int32(number)} // 16 bits
			reserved = append(reserved, machine.Reserved{Port: port, For: "podctl agent (" + setting + ")"})
		}
	}
	if _, text, err := net.SplitHostPort(f.Settings["agent.listen"].Value); err == nil {
		add(text, "listen")
	}
	if f.Settings["agent.kubeconfig"].Value != "" {
		add(cmp.Or(f.Settings["agent.port"].Value, strconv.Itoa(NodePort)), "port")
		add(f.Settings["agent.read-only-port"].Value, "read-only-port")
	}
	return reserved
}

// NodePort is the default port of the server of a node in a cluster (kubelet: KubeletPort).
const NodePort = 10250

// reservedFlagOf returns the flag for a list such as 22/TCP,68/UDP, and sets the default.
func reservedFlagOf(ports *[]podspec.Port) *list {
	l := &list{"ports", func() string {
		texts := make([]string, 0, len(*ports))
		for _, port := range *ports {
			texts = append(texts, port.String())
		}
		return strings.Join(texts, ",")
	}, func(text string) (err error) {
		*ports, err = parsePorts(text)
		return err
	}}
	// The default is valid.
	_ = l.Set(reservedDefault)
	return l
}

func parsePorts(text string) ([]podspec.Port, error) {
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
			return nil, fmt.Errorf("%q is not a port such as 22, 22/TCP or 68/UDP", one)
		}
		port.Number = int32(n) // 16 bits
		list = append(list, port)
	}
	return list, nil
}
