package node

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
)

// network is the node's bridge network. It is chosen once, and stored with the node's process.
type network struct{ bridge, subnet string }

// chooseNetwork returns the node's network: the existing one, or a new one on a subnet that this machine does not use.
func chooseNetwork(l layout, known *process) (*network, error) {
	if known != nil && known.Subnet != "" {
		return &network{known.Bridge, known.Subnet}, nil
	}
	used, err := usedPrefixes()
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256([]byte(l))
	subnet, err := freeSubnet(used, int(sum[0]))
	if err != nil {
		return nil, err
	}
	return &network{"podctl" + hex.EncodeToString(sum[:4]), subnet.String()}, nil
}

// freeSubnet finds a /24 that does not overlap used networks. The start differs between nodes.
func freeSubnet(used []netip.Prefix, start int) (netip.Prefix, error) {
	for i := range 256 {
		candidate := netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 89, byte(start + i), 0}), 24)
		if !overlaps(candidate, used) {
			return candidate, nil
		}
	}
	return netip.Prefix{}, errors.New("choosing a network: all of 10.89.0.0/16 is in use on this machine")
}

func overlaps(p netip.Prefix, used []netip.Prefix) bool {
	return slices.ContainsFunc(used, p.Overlaps)
}

// usedPrefixes returns the networks of this machine's interfaces and routes.
func usedPrefixes() ([]netip.Prefix, error) {
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return nil, fmt.Errorf("listing this machine's networks: %w", err)
	}
	var used []netip.Prefix
	for _, addr := range addrs {
		if p, parseErr := netip.ParsePrefix(addr.String()); parseErr == nil {
			used = append(used, p.Masked())
		}
	}
	routes, err := os.ReadFile("/proc/net/route")
	if err != nil {
		return used, nil //nolint:nilerr // the interfaces are known even if the routes cannot be read
	}
	return append(used, parseRoutes(string(routes))...), nil
}

// parseRoutes parses /proc/net/route, which has addresses as little-endian hexadecimal numbers. It omits the default
// route.
func parseRoutes(text string) []netip.Prefix {
	var prefixes []netip.Prefix
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) < 8 {
			continue
		}
		destination, err1 := hex.DecodeString(fields[1])
		mask, err2 := hex.DecodeString(fields[7])
		if err1 != nil || err2 != nil || len(destination) != 4 || len(mask) != 4 {
			continue
		}
		ones, _ := net.IPMask{mask[3], mask[2], mask[1], mask[0]}.Size()
		if ones == 0 {
			continue
		}
		addr := netip.AddrFrom4([4]byte{destination[3], destination[2], destination[1], destination[0]})
		prefixes = append(prefixes, netip.PrefixFrom(addr, ones).Masked())
	}
	return prefixes
}

// conflist returns the CNI configuration: a bridge with addresses from the subnet, masquerading, and published ports.
func (n *network) conflist(l layout) string {
	return fmt.Sprintf(`{
  "cniVersion": "1.0.0",
  "name": %q,
  "plugins": [
    {
      "type": "bridge",
      "bridge": %q,
      "isGateway": true,
      "ipMasq": true,
      "hairpinMode": true,
      "ipam": {
        "type": "host-local",
        "dataDir": %q,
        "ranges": [[{"subnet": %q}]],
        "routes": [{"dst": "0.0.0.0/0"}]
      }
    },
    {
      "type": "portmap",
      "capabilities": {"portMappings": true}
    }
  ]
}
`, n.bridge, n.bridge, l.path("cni", "ipam"), n.subnet)
}
