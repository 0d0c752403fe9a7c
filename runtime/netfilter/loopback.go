package netfilter

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
)

// allowLoopback lets processes of the node reach the ports of Services at 127.0.0.1: the kernel sends no packet with such an
// address to the interface of pods, unless that has route_localnet. The guard keeps others from using it.
func allowLoopback(pods []netip.Addr) error {
	interfaces, err := net.Interfaces()
	if err != nil {
		return fmt.Errorf("looking for the interface of pods: %w", err)
	}
	for _, i := range interfaces {
		if i.Flags&net.FlagLoopback == 0 && leadsTo(&i, pods) {
			err = errors.Join(err, setLocalnet(i.Name))
		}
	}
	return err
}

// leadsTo reports whether pods are in a network of the interface.
func leadsTo(i *net.Interface, pods []netip.Addr) bool {
	addresses, err := i.Addrs()
	if err != nil {
		return false // It has gone meanwhile.
	}
	return slices.ContainsFunc(addresses, func(a net.Addr) bool {
		network, err := netip.ParsePrefix(a.String())
		return err == nil && slices.ContainsFunc(pods, network.Contains)
	})
}

func setLocalnet(name string) error {
	path := filepath.Join("/proc/sys/net/ipv4/conf", name, "route_localnet")
	if filepath.Base(name) != name {
		return nil // No interface of pods is called so.
	}
	if err := os.WriteFile(path, []byte("1"), 0o644); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("letting this node reach ports of Services at 127.0.0.1: %w", err)
	}
	return nil
}
