package netfilter

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/google/nftables"
	"golang.org/x/sys/unix"

	"github.com/podctl/podctl/runtime/service"
)

// Rules are what the kernel is told of Services.
type Rules struct {
	Routes []service.Route
	// Pods are the addresses of all pods that have their own.
	Pods []netip.Addr
}

// Write replaces the tables of a name with these rules. Without any the tables are removed.
func Write(name string, r Rules) error {
	conn, err := nftables.New()
	if err != nil {
		return fmt.Errorf("opening netfilter: %w", err)
	}
	for _, f := range []family{ipv4(), ipv6()} {
		if err := replace(conn, name, f, r); err != nil {
			return fmt.Errorf("writing the rules of Services (nftables table %s %s): %w", f.word, name, err)
		}
	}
	if mine := r.of(ipv4()); mine.publishes() {
		return allowLoopback(mine.Pods)
	}
	return nil
}

// replace puts a table in the place of that which is there.
func replace(conn *nftables.Conn, name string, f family, r Rules) error {
	there, err := conn.ListTablesOfFamily(f.table)
	if err != nil {
		return unsupported(err)
	}
	t := &nftables.Table{Name: name, Family: f.table}
	found := slices.ContainsFunc(there, func(other *nftables.Table) bool { return other.Name == name })
	mine := r.of(f)
	guarded := found && hasGuard(conn, f, name)
	if found {
		conn.DelTable(t)
	}
	if len(mine.Routes) > 0 || guarded {
		w := &writer{conn: conn, table: conn.AddTable(t), family: f}
		if guarded || f.word == "ip" && mine.publishes() {
			w.guard()
		}
		if err := w.write(mine); err != nil {
			return err
		}
	}
	return unsupported(conn.Flush())
}

// unsupported says of a kernel what it lacks.
func unsupported(err error) error {
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.EAFNOSUPPORT) || errors.Is(err, unix.EPROTONOSUPPORT) {
		return fmt.Errorf("%w: the kernel has no nftables with NAT (CONFIG_NF_TABLES, CONFIG_NFT_NAT, CONFIG_NFT_MASQ)", err)
	}
	return err
}

// of are the rules of one family.
func (r Rules) of(f family) Rules {
	var mine Rules
	for _, route := range r.Routes {
		route.Addresses = slices.DeleteFunc(slices.Clone(route.Addresses), func(a netip.Addr) bool { return !f.has(a) })
		route.Endpoints = slices.DeleteFunc(slices.Clone(route.Endpoints), func(a netip.AddrPort) bool { return !f.has(a.Addr()) })
		if len(route.Addresses) > 0 {
			mine.Routes = append(mine.Routes, route)
		}
	}
	mine.Pods = slices.DeleteFunc(slices.Clone(r.Pods), func(a netip.Addr) bool { return !f.has(a) })
	return mine
}

// publishes reports whether some route has a port of the node.
func (r Rules) publishes() bool {
	return slices.ContainsFunc(r.Routes, func(route service.Route) bool { return len(route.NodePorts) > 0 })
}

// hasGuard reports whether the table that is there has the chain that guards the node's loopback addresses. It stays for as
// long as the kernel may let others reach them.
func hasGuard(conn *nftables.Conn, f family, name string) bool {
	chains, err := conn.ListChainsOfTableFamily(f.table)
	return err == nil && slices.ContainsFunc(chains, func(c *nftables.Chain) bool { return c.Table.Name == name && c.Name == guardChain })
}
