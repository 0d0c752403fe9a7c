package podspec

import (
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
)

func TestPortsCollide(t *testing.T) {
	web := Port{Protocol: v1.ProtocolTCP, Number: 80}
	for name, c := range map[string]struct {
		other Port
		want  bool
	}{
		"the same":            {web, true},
		"another number":      {Port{Protocol: v1.ProtocolTCP, Number: 81}, false},
		"another protocol":    {Port{Protocol: v1.ProtocolUDP, Number: 80}, false},
		"one address of many": {Port{Protocol: v1.ProtocolTCP, Number: 80, HostIP: "10.0.0.1"}, true},
	} {
		if got := web.Collides(c.other); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
	a, b := web, web
	a.HostIP, b.HostIP = "10.0.0.1", "10.0.0.2"
	if a.Collides(b) {
		t.Error("two addresses collide")
	}
}

// TestPublishedPorts are those with a port of the node, in the order of the manifest; on the
// node's own network there are none.
func TestPublishedPorts(t *testing.T) {
	pod := &v1.Pod{Spec: v1.PodSpec{Containers: []v1.Container{
		{Name: "a", Ports: []v1.ContainerPort{{ContainerPort: 80, Protocol: v1.ProtocolTCP}, {ContainerPort: 81, HostPort: 8081, Protocol: v1.ProtocolTCP}}},
		{Name: "b", Ports: []v1.ContainerPort{{ContainerPort: 53, HostPort: 53, HostIP: "10.0.0.1", Protocol: v1.ProtocolUDP}}},
	}}}
	want := []Port{
		{Protocol: v1.ProtocolTCP, Number: 8081, ContainerPort: 81, Path: "spec.containers[0].ports[1]"},
		{Protocol: v1.ProtocolUDP, Number: 53, HostIP: "10.0.0.1", ContainerPort: 53, Path: "spec.containers[1].ports[0]"},
	}
	if got := PublishedPorts(pod); !slices.Equal(got, want) {
		t.Errorf("%+v", got)
	}
	pod.Spec.HostNetwork = true
	if got := PublishedPorts(pod); got != nil {
		t.Errorf("on the node's network: %+v", got)
	}
}
