package podspec

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
)

// TestPublishedPorts checks that only ports of regular containers with a hostPort are published, and none in the node's
// network.
func TestPublishedPorts(t *testing.T) {
	pod := &v1.Pod{Spec: v1.PodSpec{
		InitContainers: []v1.Container{{Ports: []v1.ContainerPort{{ContainerPort: 1, HostPort: 1}}}},
		Containers: []v1.Container{
			{
				Ports: []v1.ContainerPort{
					{ContainerPort: 80},
					{ContainerPort: 81, HostPort: 8081, Protocol: v1.ProtocolTCP, HostIP: "127.0.0.1"},
				},
			},
			{Ports: []v1.ContainerPort{{ContainerPort: 53, HostPort: 53, Protocol: v1.ProtocolUDP}}},
		},
	}}
	want := []Port{
		{Protocol: v1.ProtocolTCP, Number: 8081, HostIP: "127.0.0.1", ContainerPort: 81, Path: "spec.containers[0].ports[1]"},
		{Protocol: v1.ProtocolUDP, Number: 53, ContainerPort: 53, Path: "spec.containers[1].ports[0]"},
	}
	got := PublishedPorts(pod)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if got[0].String() != "127.0.0.1:8081/TCP" || got[1].String() != "53/UDP" {
		t.Errorf("written as %s and %s", got[0], got[1])
	}
	pod.Spec.HostNetwork = true
	if got := PublishedPorts(pod); len(got) > 0 {
		t.Errorf("on the node's network: %v", got)
	}
}

// TestCollides checks which ports share an address, independent of its notation.
func TestCollides(t *testing.T) {
	at := func(ip string) Port { return Port{Protocol: v1.ProtocolTCP, Number: 80, HostIP: ip} }
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"", "127.0.0.1", true},
		{"0.0.0.0", "::1", true},
		{"0:0:0:0:0:0:0:0", "192.0.2.1", true},
		{"::ffff:0.0.0.0", "192.0.2.1", true},
		{"127.0.0.1", "127.0.0.1", true},
		{"127.0.0.1", "127.0.0.2", false},
		{"::1", "0:0:0:0:0:0:0:1", true},
		{"::ffff:192.0.2.1", "192.0.2.1", true},
		{"::1", "127.0.0.1", false},
	} {
		if at(c.a).Collides(at(c.b)) != c.want || at(c.b).Collides(at(c.a)) != c.want {
			t.Errorf("%q and %q: want %v", c.a, c.b, c.want)
		}
	}
	if other := (Port{Protocol: v1.ProtocolUDP, Number: 80}); at("").Collides(other) {
		t.Error("ports of two protocols collide")
	}
}
