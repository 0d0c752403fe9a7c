package netfilter

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
)

// guardTable returns the name of the table that drops packets to and from 127.0.0.0/8 that come in on interfaces other
// than lo. It is a separate table, because it must outlive the rules of Services. Each state directory has its own, so
// that none removes another's.
func guardTable(name string) string { return name + guardSuffix }

const guardSuffix = "-guard"

// sysctls has a directory for each network interface of this network namespace.
const sysctls = "/proc/sys/net/ipv4/conf"

// Record stores the names of the interfaces on which podctl has set route_localnet, so that it does not reset others.
type Record interface {
	// Interfaces returns the recorded names.
	Interfaces() ([]string, error)
	// Replace replaces the recorded names. Without names it removes the record.
	Replace(names []string) error
}

// Open reports whether the kernel accepts packets for 127.0.0.0/8 on an interface: one other than lo has
// route_localnet. podctl sets it for NodePorts, and the CNI plugin portmap sets it for hostPorts. The setting "all"
// applies to all interfaces.
func (Kernel) Open() bool { return len(opened()) > 0 }

// opened returns the interfaces with route_localnet.
func opened() []string {
	entries, err := os.ReadDir(sysctls)
	if err != nil {
		return nil // The kernel has no IPv4.
	}
	var names []string
	for _, e := range entries {
		if name := e.Name(); name != "lo" && name != "default" && localnet(name) {
			names = append(names, name)
		}
	}
	return names
}

// localnet reports whether an interface has route_localnet. It returns false for an interface that is gone.
func localnet(name string) bool {
	text, err := os.ReadFile(localnetPath(name))
	return err == nil && !bytes.Equal(bytes.TrimSpace(text), []byte("0"))
}

func localnetPath(name string) string { return filepath.Join(sysctls, name, "route_localnet") }

// setRouteLocalnet lets processes of the node reach NodePorts at 127.0.0.1. The kernel sends a packet with such an
// address to the interface of pods only if the interface has route_localnet. The guard must be in place before.
func setRouteLocalnet(pods []netip.Addr, record Record) error {
	interfaces, err := net.Interfaces()
	if err != nil {
		return fmt.Errorf("finding the network interface of the pods: %w", err)
	}
	var closed []string
	for _, i := range interfaces {
		if i.Flags&net.FlagLoopback == 0 && isConnectedTo(&i, pods) && !localnet(i.Name) {
			closed = append(closed, i.Name)
		}
	}
	if len(closed) == 0 {
		return nil
	}
	// A damaged record is replaced, because it would stop every later change.
	before, _ := record.Interfaces()
	if err := record.Replace(slices.Compact(slices.Sorted(slices.Values(append(before, closed...))))); err != nil {
		return err
	}
	return setLocalnet(closed, "1")
}

// resetRouteLocalnet resets route_localnet on the interfaces on which podctl has set it.
func resetRouteLocalnet(record Record) error {
	names, err := record.Interfaces()
	if err != nil || len(names) == 0 {
		return err
	}
	if err := setLocalnet(names, "0"); err != nil {
		return err
	}
	return record.Replace(nil)
}

// isConnectedTo reports whether pods are in a network of the interface.
func isConnectedTo(i *net.Interface, pods []netip.Addr) bool {
	addresses, err := i.Addrs()
	if err != nil {
		return false // The interface is gone.
	}
	return slices.ContainsFunc(addresses, func(a net.Addr) bool {
		network, err := netip.ParsePrefix(a.String())
		return err == nil && slices.ContainsFunc(pods, network.Contains)
	})
}

func setLocalnet(names []string, value string) error {
	var errs []error
	for _, name := range names {
		if name == "." || name == ".." || strings.ContainsRune(name, filepath.Separator) {
			continue // No interface has such a name.
		}
		// Without O_CREATE: an interface that is gone has no file.
		f, err := os.OpenFile(localnetPath(name), os.O_WRONLY, 0)
		if err == nil {
			_, err = f.WriteString(value)
			err = errors.Join(err, f.Close())
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, fmt.Errorf("setting route_localnet of the interface %s to %s: %w", name, value, err))
		}
	}
	return errors.Join(errs...)
}

// replaceGuard adds the guard of a state directory to the transaction. It replaces an existing one, because another
// program may have changed it.
func replaceGuard(conn *nftables.Conn, name string) error {
	err := removeGuards(conn, func(table string) bool { return table == guardTable(name) })
	if err == nil {
		t := conn.AddTable(&nftables.Table{Name: guardTable(name), Family: ipv4().table})
		(&writer{conn: conn, table: t, family: ipv4()}).guard()
	}
	return err
}

// removeGuards adds the removal of guards to the transaction.
func removeGuards(conn *nftables.Conn, which func(table string) bool) error {
	tables, err := conn.ListTablesOfFamily(ipv4().table)
	for _, t := range tables {
		if strings.HasPrefix(t.Name, tablePrefix) && strings.HasSuffix(t.Name, guardSuffix) && which(t.Name) {
			conn.DelTable(t)
		}
	}
	return err
}

// guard drops outside packets to the node's loopback addresses, and outside packets that claim to come from one. The
// kernel does so itself, unless an interface has route_localnet.
func (w *writer) guard() {
	chain := w.base(guardChain, nftables.ChainTypeFilter, nftables.ChainHookPrerouting, nftables.ChainPriorityRaw)
	lo := append([]byte("lo"), make([]byte, unix.IFNAMSIZ-2)...)
	for _, address := range []expr.Any{w.family.loadDestination(), w.family.loadSource()} {
		w.rule(chain, &expr.Meta{Key: expr.MetaKeyIIFNAME, Register: first}, differs(lo),
			address, masked(4, []byte{255, 0, 0, 0}), equals([]byte{127, 0, 0, 0}),
			&expr.Verdict{Kind: expr.VerdictDrop})
	}
}
