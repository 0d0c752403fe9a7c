package model

import (
	"fmt"
	"testing"
)

// TestPodIPs checks that a pod's addresses follow from its sandbox, and that probes use the first one.
func TestPodIPs(t *testing.T) {
	ready := Sandbox{State: SandboxReady, IPs: []string{"fd00::2", "10.0.0.2", "10.0.0.3"}}
	dead, host := ready, Sandbox{HostNetwork: true}
	dead.State = SandboxNotReady
	for name, c := range map[string]struct {
		sandbox *Sandbox
		node    []string
		want    string
		address string
	}{
		"one of each family":          {&ready, []string{"192.0.2.7"}, "[10.0.0.2 fd00::2]", "10.0.0.2"},
		"the node's family first":     {&ready, []string{"2001:db8::7"}, "[fd00::2 10.0.0.2]", "fd00::2"},
		"the node's are not known":    {&ready, nil, "[10.0.0.2 fd00::2]", "10.0.0.2"},
		"the sandbox is not ready":    {&dead, []string{"192.0.2.7"}, "[]", ""},
		"the sandbox is gone":         {nil, []string{"192.0.2.7"}, "[]", ""},
		"the node's network":          {&host, []string{"192.0.2.7", "2001:db8::7"}, "[192.0.2.7 2001:db8::7]", "192.0.2.7"},
		"of a node without any of it": {&host, nil, "[]", "127.0.0.1"},
	} {
		if got := fmt.Sprint(c.sandbox.PodIPs(c.node)); got != c.want {
			t.Errorf("%s: %s, not %s", name, got, c.want)
		}
		if got := c.sandbox.Address(c.node); got != c.address {
			t.Errorf("%s: reached at %q, not %q", name, got, c.address)
		}
	}
	o := &Observed{Sandboxes: []Sandbox{{ID: "a"}, {ID: "b"}}}
	if s := o.SandboxOf("b"); s != &o.Sandboxes[1] || o.SandboxOf("c") != nil {
		t.Errorf("b is %+v", s)
	}
}
