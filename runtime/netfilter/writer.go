package netfilter

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/google/nftables"
	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/runtime/service"
)

// The registers that rules use.
const (
	first  = 1
	second = 2
)

// The chains to which others jump, and the guard.
const (
	servicesChain = "services"
	nodeChain     = "nodeports"
	guardChain    = "guard"
)

// writer fills one table.
type writer struct {
	conn   *nftables.Conn
	table  *nftables.Table
	family family
	// services and pods are the sets of these addresses.
	services, pods *nftables.Set
	numbered       int
}

// write writes a whole table.
func (w *writer) write(r Rules) error {
	if len(r.Routes) == 0 {
		return nil
	}
	var own []netip.Addr
	for _, route := range r.Routes {
		own = append(own, route.Addresses...)
	}
	var err error
	if w.services, err = w.set("addresses", own); err != nil {
		return err
	}
	if w.pods, err = w.set("pods", r.Pods); err != nil {
		return err
	}
	w.routes(r.Routes)
	w.masquerade()
	w.refuse()
	return nil
}

func (w *writer) set(name string, addresses []netip.Addr) (*nftables.Set, error) {
	set := &nftables.Set{Table: w.table, Name: name, KeyType: w.family.key}
	seen := map[netip.Addr]bool{}
	var elements []nftables.SetElement
	for _, addr := range addresses {
		if !seen[addr] {
			elements = append(elements, nftables.SetElement{Key: addr.AsSlice()})
		}
		seen[addr] = true
	}
	return set, w.conn.AddSet(set, elements)
}

// routes writes the rules that route traffic of Services to their endpoints: packets that come to the node, and packets
// that the node itself sends.
func (w *writer) routes(routes []service.Route) {
	services, node := w.chain(servicesChain), w.chain(nodeChain)
	for _, at := range []struct {
		name string
		hook *nftables.ChainHook
	}{{"prerouting", nftables.ChainHookPrerouting}, {"output", nftables.ChainHookOutput}} {
		base := w.base(at.name, nftables.ChainTypeNAT, at.hook, nftables.ChainPriorityNATDest)
		w.rule(base, w.family.loadDestination(), in(w.services), jump(services))
		w.rule(base, &expr.Fib{Register: first, ResultADDRTYPE: true, FlagDADDR: true},
			equals(binaryutil.NativeEndian.PutUint32(unix.RTN_LOCAL)), jump(node))
	}
	for i := range routes {
		route := &routes[i]
		if len(route.Endpoints) == 0 {
			continue
		}
		to := w.endpoints(route)
		for _, addr := range route.Addresses {
			match := append(w.port(route.Protocol, route.Port), w.family.loadDestination(), equals(addr.AsSlice()))
			w.rule(services, append(match, jump(to))...)
		}
		for _, number := range route.NodePorts {
			w.rule(node, append(w.port(route.Protocol, number), jump(to))...)
		}
	}
}

// endpoints returns a chain that leads to one of the endpoints of a route: a random one, or always the same for a
// client.
func (w *writer) endpoints(r *service.Route) *nftables.Chain {
	w.numbered++
	chain := w.chain(fmt.Sprintf("service-%d", w.numbered))
	count := uint32(len(r.Endpoints)) // far below the limit
	for i, e := range r.Endpoints {
		i := uint32(i) // as count
		var chosen []expr.Any
		switch {
		case r.Sticky:
			chosen = []expr.Any{
				w.family.loadSource(),
				&expr.Hash{
					SourceRegister: first,
					DestRegister:   second,
					Length:         w.family.size,
					Modulus:        count,
					Type:           expr.HashTypeJenkins,
				},
				&expr.Cmp{Op: expr.CmpOpEq, Register: second, Data: binaryutil.NativeEndian.PutUint32(i)},
			}
		case i+1 < count:
			// Each of the remaining endpoints has the same chance.
			chosen = []expr.Any{
				&expr.Numgen{Register: first, Modulus: count - i, Type: unix.NFT_NG_RANDOM},
				equals(binaryutil.NativeEndian.PutUint32(0)),
			}
		}
		w.rule(chain, append(chosen,
			&expr.Immediate{Register: first, Data: e.Addr().AsSlice()},
			&expr.Immediate{Register: second, Data: binaryutil.BigEndian.PutUint16(e.Port())},
			&expr.NAT{Type: expr.NATTypeDestNAT, Family: w.family.nat, RegAddrMin: first, RegProtoMin: second})...)
	}
	return chain
}

// masquerade makes endpoints answer through the node if they would otherwise answer pods directly, or if a process of
// the node has connected from a loopback address.
func (w *writer) masquerade() {
	chain := w.base("postrouting", nftables.ChainTypeNAT,
		nftables.ChainHookPostrouting, nftables.ChainPriorityNATSource)
	led := []expr.Any{
		&expr.Ct{Key: expr.CtKeySTATUS, Register: first},
		masked(4, binaryutil.NativeEndian.PutUint32(statusDNAT)), differs(make([]byte, 4)),
		w.family.loadDestination(), in(w.pods), w.family.loadSource(),
	}
	w.rule(chain, append(slices.Clip(led), in(w.pods), &expr.Masq{})...)
	if w.family.word == "ip" {
		fromLoopback := []expr.Any{masked(4, []byte{255, 0, 0, 0}), equals([]byte{127, 0, 0, 0})}
		w.rule(chain, append(append(slices.Clip(led), fromLoopback...), &expr.Masq{})...)
	}
}

// statusDNAT is the status bit of a connection whose destination was changed (IPS_DST_NAT).
const statusDNAT = 1 << 5

// refuse rejects packets whose destination is still the address of a Service: the Service has no such port, or no ready
// pod.
func (w *writer) refuse() {
	hooks := map[string]*nftables.ChainHook{
		"refuse-forward": nftables.ChainHookForward,
		"refuse-output":  nftables.ChainHookOutput,
	}
	for name, hook := range hooks {
		chain := w.base(name, nftables.ChainTypeFilter, hook, nftables.ChainPriorityFilter)
		led := []expr.Any{w.family.loadDestination(), in(w.services)}
		tcp := []expr.Any{
			&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: first},
			equals([]byte{unix.IPPROTO_TCP}),
			&expr.Reject{Type: unix.NFT_REJECT_TCP_RST},
		}
		w.rule(chain, append(led[:2:2], tcp...)...)
		w.rule(chain, append(led[:2:2], &expr.Reject{Type: unix.NFT_REJECT_ICMP_UNREACH, Code: w.family.refused})...)
	}
}

func (w *writer) chain(name string) *nftables.Chain {
	return w.conn.AddChain(&nftables.Chain{Name: name, Table: w.table})
}

func (w *writer) base(
	name string, kind nftables.ChainType, hook *nftables.ChainHook, priority *nftables.ChainPriority,
) *nftables.Chain {
	return w.conn.AddChain(&nftables.Chain{Name: name, Table: w.table, Type: kind, Hooknum: hook, Priority: priority})
}

func (w *writer) rule(chain *nftables.Chain, exprs ...expr.Any) {
	w.conn.AddRule(&nftables.Rule{Table: w.table, Chain: chain, Exprs: exprs})
}

// port matches a protocol and a destination port.
func (*writer) port(protocol v1.Protocol, number uint16) []expr.Any {
	numbers := map[v1.Protocol]byte{
		v1.ProtocolTCP:  unix.IPPROTO_TCP,
		v1.ProtocolUDP:  unix.IPPROTO_UDP,
		v1.ProtocolSCTP: unix.IPPROTO_SCTP,
	}
	return []expr.Any{
		&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: first},
		equals([]byte{numbers[protocol]}),
		&expr.Payload{DestRegister: first, Base: expr.PayloadBaseTransportHeader, Offset: 2, Len: 2},
		equals(binaryutil.BigEndian.PutUint16(number)),
	}
}

func equals(data []byte) expr.Any {
	return &expr.Cmp{Op: expr.CmpOpEq, Register: first, Data: data}
}

func differs(data []byte) expr.Any {
	return &expr.Cmp{Op: expr.CmpOpNeq, Register: first, Data: data}
}

func masked(size uint32, mask []byte) expr.Any {
	return &expr.Bitwise{SourceRegister: first, DestRegister: first, Len: size, Mask: mask, Xor: make([]byte, size)}
}

func in(set *nftables.Set) expr.Any {
	return &expr.Lookup{SourceRegister: first, SetName: set.Name, SetID: set.ID}
}

func jump(to *nftables.Chain) expr.Any {
	return &expr.Verdict{Kind: expr.VerdictJump, Chain: to.Name}
}
