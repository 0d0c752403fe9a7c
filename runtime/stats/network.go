package stats

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

// device is a network interface with its counts.
type device struct {
	name   string
	rx, tx transfer
}

// transfer counts what an interface has received or sent.
type transfer struct{ bytes, packets, errors, dropped uint64 }

// mainDevice is the interface whose statistics are also those of the node or the pod (kubelet:
// defaultNetworkInterfaceName). A node may have no interface of this name.
const mainDevice = "eth0"

// devicesOf returns the interfaces in the network of a process; none if it is gone.
func devicesOf(pid int) []device {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/net/dev", pid)) // Unknown values are left out.
	return parseDevices(string(text))
}

// parseDevices parses the kernel's table of interfaces. It leaves out loopback, and those of pods and bridges, as
// cAdvisor does.
func parseDevices(text string) (all []device) {
	for line := range strings.Lines(text) {
		name, rest, found := strings.Cut(strings.TrimSpace(line), ":")
		values := strings.Fields(rest)
		if !found || len(values) < 12 || name == "lo" || strings.HasPrefix(name, "veth") ||
			strings.HasPrefix(name, "docker") {
			continue
		}
		one := device{name: name}
		for i, into := range []*uint64{
			&one.rx.bytes, &one.rx.packets, &one.rx.errors, &one.rx.dropped, nil, nil, nil, nil,
			&one.tx.bytes, &one.tx.packets, &one.tx.errors, &one.tx.dropped,
		} {
			if n, err := strconv.ParseUint(values[i], 10, 64); err == nil && into != nil {
				*into = n
			}
		}
		all = append(all, one)
	}
	return all
}

// networkOf returns the statistics of interfaces; nil if there are none.
func networkOf(devices []device, at metav1.Time) *statsapi.NetworkStats {
	if len(devices) == 0 {
		return nil
	}
	s := &statsapi.NetworkStats{Time: at}
	for i := range devices {
		d := &devices[i]
		one := statsapi.InterfaceStats{
			Name: d.name, RxBytes: &d.rx.bytes, RxErrors: &d.rx.errors, TxBytes: &d.tx.bytes, TxErrors: &d.tx.errors,
		}
		s.Interfaces = append(s.Interfaces, one)
		if d.name == mainDevice {
			s.InterfaceStats = one
		}
	}
	return s
}
