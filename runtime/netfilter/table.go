package netfilter

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/google/nftables"
	"golang.org/x/sys/unix"

	"github.com/podctl/podctl/runtime/service"
)

// tablePrefix starts the name of each table of podctl.
const tablePrefix = "podctl-"

// Kernel writes rules to the kernel, in the network namespace of this process.
type Kernel struct{}

// Rules describe the traffic of the Services of one state directory.
type Rules struct {
	Routes []service.Route
	// Pods are the addresses of all pods that have their own.
	Pods []netip.Addr
	// HostPorts reports whether a pod publishes a hostPort: the CNI plugin portmap needs route_localnet for it, too.
	HostPorts bool
}

// Guard adds the guard of 127.0.0.0/8. Call it before route_localnet of an interface is set.
func (Kernel) Guard(name string) error {
	conn, err := nftables.New()
	if err != nil {
		return fmt.Errorf("opening netfilter: %w", err)
	}
	return protect(conn, name)
}

// Has reports whether there are tables under a name. It returns false if the kernel cannot be queried, because it has
// no nftables.
func (Kernel) Has(name string) bool {
	conn, err := nftables.New()
	if err != nil {
		return false
	}
	tables, err := conn.ListTables()
	return err == nil && slices.ContainsFunc(tables, func(t *nftables.Table) bool {
		return t.Name == name || t.Name == guardTable(name)
	})
}

// Write replaces the tables under a name with these rules. Without routes it removes the tables. It keeps the guard of
// 127.0.0.0/8 while an interface has route_localnet, and restores it if it was removed. When no Service has a port of
// the node any more, Write resets route_localnet where the record shows that podctl has set it.
func (k Kernel) Write(name string, r Rules, record Record) error {
	conn, err := nftables.New()
	if err != nil {
		return fmt.Errorf("opening netfilter: %w", err)
	}
	mine := r.of(ipv4())
	publishes := mine.publishes()
	if publishes || k.Open() {
		if err := protect(conn, name); err != nil {
			return err
		}
	}
	for _, f := range []family{ipv4(), ipv6()} {
		if err := replace(conn, name, f, r); err != nil {
			return fmt.Errorf("writing the rules of Services (nftables table %s %s): %w", f.word, name, err)
		}
	}
	if publishes {
		return setRouteLocalnet(mine.Pods, record)
	}
	if others, err := otherTables(conn, name); err != nil || others || r.HostPorts {
		return err
	}
	if err := resetRouteLocalnet(record); err != nil {
		return err
	}
	return k.unprotect(conn, name)
}

// Remove removes the tables under a name with the guard, and resets route_localnet where the record shows that podctl
// has set it.
func (Kernel) Remove(name string, record Record) error {
	conn, err := nftables.New()
	if err != nil {
		return fmt.Errorf("opening netfilter: %w", err)
	}
	for _, f := range []family{ipv4(), ipv6()} {
		if err := replace(conn, name, f, Rules{}); err != nil {
			return fmt.Errorf("removing the rules of Services (nftables table %s %s): %w", f.word, name, err)
		}
	}
	// Another state directory with rules has its own guard, and needs its ports.
	if others, err := otherTables(conn, name); err != nil || !others {
		if err = errors.Join(err, resetRouteLocalnet(record)); err != nil {
			return err
		}
	}
	if err := removeGuards(conn, func(table string) bool { return table == guardTable(name) }); err != nil {
		return err
	}
	return unsupported(conn.Flush())
}

// unprotect removes the guards of all state directories once no interface is open.
func (k Kernel) unprotect(conn *nftables.Conn, name string) error {
	if k.Open() {
		return nil
	}
	err := removeGuards(conn, func(string) bool { return true })
	if err == nil {
		err = conn.Flush()
	}
	if err != nil || !k.Open() {
		return unsupported(err)
	}
	// Another process has opened an interface in the meantime, and its guard may be gone.
	return protect(conn, name)
}

// protect adds the guard.
func protect(conn *nftables.Conn, name string) error {
	err := replaceGuard(conn, name)
	if err == nil {
		err = conn.Flush()
	}
	if err != nil {
		return fmt.Errorf("protecting the node's 127.0.0.1 (nftables table ip %s): %w",
			guardTable(name), unsupported(err))
	}
	return nil
}

// otherTables reports whether another state directory has rules: it may publish ports on the same interface.
func otherTables(conn *nftables.Conn, name string) (bool, error) {
	tables, err := conn.ListTablesOfFamily(ipv4().table)
	return slices.ContainsFunc(tables, func(t *nftables.Table) bool {
		return strings.HasPrefix(t.Name, tablePrefix) && t.Name != name && !strings.HasSuffix(t.Name, guardSuffix)
	}), unsupported(err)
}

func hasTable(conn *nftables.Conn, f family, name string) (bool, error) {
	tables, err := conn.ListTablesOfFamily(f.table)
	return slices.ContainsFunc(tables, func(t *nftables.Table) bool { return t.Name == name }), unsupported(err)
}

// replace replaces a table, or removes it if there are no routes.
func replace(conn *nftables.Conn, name string, f family, r Rules) error {
	found, err := hasTable(conn, f, name)
	if err != nil {
		return err
	}
	t := &nftables.Table{Name: name, Family: f.table}
	mine := r.of(f)
	if found {
		conn.DelTable(t)
	}
	if len(mine.Routes) > 0 {
		if err := (&writer{conn: conn, table: conn.AddTable(t), family: f}).write(mine); err != nil {
			return err
		}
	}
	return unsupported(conn.Flush())
}

// unsupported adds the missing kernel options to the error of a kernel without nftables.
func unsupported(err error) error {
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.EAFNOSUPPORT) || errors.Is(err, unix.EPROTONOSUPPORT) {
		return fmt.Errorf("%w: the kernel has no nftables with NAT (CONFIG_NF_TABLES, CONFIG_NFT_NAT, CONFIG_NFT_MASQ)",
			err)
	}
	return err
}

// of returns the rules of one family.
func (r Rules) of(f family) Rules {
	var mine Rules
	for _, route := range r.Routes {
		route.Addresses = slices.DeleteFunc(slices.Clone(route.Addresses), func(a netip.Addr) bool { return !f.has(a) })
		route.Endpoints = slices.DeleteFunc(slices.Clone(route.Endpoints), func(a netip.AddrPort) bool {
			return !f.has(a.Addr())
		})
		if len(route.Addresses) > 0 {
			mine.Routes = append(mine.Routes, route)
		}
	}
	mine.Pods = slices.DeleteFunc(slices.Clone(r.Pods), func(a netip.Addr) bool { return !f.has(a) })
	return mine
}

// publishes reports whether a route has a port of the node.
func (r Rules) publishes() bool {
	return slices.ContainsFunc(r.Routes, func(route service.Route) bool { return len(route.NodePorts) > 0 })
}
