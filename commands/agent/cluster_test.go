package agent

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/podctl/podctl/commands/exit"
	"github.com/podctl/podctl/runtime/agent/daemon"
	"github.com/podctl/podctl/runtime/agent/eviction"
)

// clusterOf returns the settings of a command line.
func clusterOf(t *testing.T, args string) (*daemon.ClusterSettings, error) {
	t.Helper()
	o, f := &clusterOptions{}, pflag.NewFlagSet("agent", pflag.ContinueOnError)
	o.addTo(f)
	if err := f.Parse(strings.Fields(args)); err != nil {
		t.Fatal(err)
	}
	return o.settings(map[string]string{"disk": "ssd"})
}

// TestClusterFlags checks the settings of a node.
func TestClusterFlags(t *testing.T) {
	if s, err := clusterOf(t, ""); s != nil || err != nil {
		t.Errorf("without flags: %v, %v", s, err)
	}
	s, err := clusterOf(t, "--kubeconfig k --node-name n1 --node-ip 192.0.2.1,2001:db8::1 --register-with-taints a=b:NoSchedule,c:NoExecute "+
		"--provider-id p --cluster-dns 169.254.20.10,fd00::a --cluster-domain cluster.local --authorization-mode AlwaysAllow "+
		"--bootstrap-kubeconfig b --rotate-certificates --rotate-server-certificates")
	if err != nil {
		t.Fatal(err)
	}
	if s.Kubeconfig != "k" || s.NodeName != "n1" || s.ProviderID != "p" || !s.Server.AlwaysAllow || s.Server.Port != 10250 {
		t.Errorf("%+v", s)
	}
	if s.Bootstrap != "b" || !s.RotateCertificates || !s.Server.RotateCertificates {
		t.Errorf("%+v", s)
	}
	if len(s.NodeIPs) != 2 || s.NodeIPs[1].String() != "2001:db8::1" {
		t.Errorf("addresses %v", s.NodeIPs)
	}
	if fmt.Sprintf("%v %s", s.ClusterDNS, s.ClusterDomain) != "[169.254.20.10 fd00::a] cluster.local" {
		t.Errorf("DNS %v, %s", s.ClusterDNS, s.ClusterDomain)
	}
	if len(s.Taints) != 2 || s.Taints[0].ToString() != "a=b:NoSchedule" || s.Taints[1].ToString() != "c:NoExecute" {
		t.Errorf("taints %v", s.Taints)
	}
}

// TestAccessFlags checks that only AlwaysAllow without other flags accepts clients without credentials.
func TestAccessFlags(t *testing.T) {
	for args, want := range map[string]string{
		"":                                 "false false",
		"--authorization-mode Webhook":     "false false",
		"--anonymous-auth":                 "false true",
		"--authorization-mode AlwaysAllow": "true true",
		"--authorization-mode AlwaysAllow --anonymous-auth=false": "true false",
		"--authorization-mode AlwaysAllow --client-ca-file c":     "true false",
	} {
		s, err := clusterOf(t, "--kubeconfig k "+args)
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(s.Server.AlwaysAllow, s.Server.Anonymous); got != want {
			t.Errorf("%q: %s, want %s", args, got, want)
		}
		if s.Server.TokenTTL != 2*time.Minute || s.Server.AllowTTL != 5*time.Minute || s.Server.DenyTTL != 30*time.Second {
			t.Errorf("%+v", s.Server)
		}
	}
}

// TestResources checks that the resources of a node follow from the flags of admission and eviction.
func TestResources(t *testing.T) {
	o := &agentOptions{}
	o.admissionFlags.MaxPods = 10
	o.Eviction.Thresholds, _ = eviction.Texts{Hard: "memory.available<1Gi"}.Parse()
	if err := o.setResources(); err != nil || len(o.admissionFlags.KeptFree) != 1 {
		t.Errorf("%+v, %v", o.admissionFlags.Settings, err)
	}
	o.Eviction.Thresholds = nil
	if err := o.setResources(); err != nil || o.admissionFlags.KeptFree == nil || len(o.admissionFlags.KeptFree) > 0 {
		t.Errorf("without eviction: %+v, %v", o.admissionFlags.Settings, err)
	}
	o.admissionFlags.MaxPods = 0
	if err := o.setResources(); err == nil || !strings.Contains(err.Error(), "--max-pods 0: ") {
		t.Error(err)
	}
}

// TestBadClusterFlags checks that a wrong flag is an error of use that names it.
func TestBadClusterFlags(t *testing.T) {
	for args, want := range map[string]string{
		"--kubeconfig k --tls-cert-file c --tls-private-key-file k --rotate-server-certificates": "exclude each other",
		"--bootstrap-kubeconfig b":                                        "--bootstrap-kubeconfig needs --kubeconfig",
		"--node-name n":                                                   "--node-name needs --kubeconfig",
		"--port 1":                                                        "--port needs --kubeconfig",
		"--kubeconfig k --node-name A_b":                                  "--node-name A_b: ",
		"--cluster-domain d":                                              "--cluster-domain needs --kubeconfig",
		"--kubeconfig k --cluster-dns x":                                  "--cluster-dns x: it is not the IP address of a server",
		"--kubeconfig k --cluster-dns 0.0.0.0":                            "--cluster-dns 0.0.0.0: ",
		"--kubeconfig k --cluster-domain A_b":                             "--cluster-domain A_b: ",
		"--kubeconfig k --node-ip x":                                      "--node-ip x: it is not an IP address",
		"--kubeconfig k --node-ip 127.0.0.1":                              "--node-ip 127.0.0.1: other machines cannot reach it",
		"--kubeconfig k --node-ip 192.0.2.1,192.0.2.2":                    "192.0.2.1 and 192.0.2.2 are of the same family",
		"--kubeconfig k --register-with-taints a":                         "--register-with-taints a: must be KEY=VALUE:EFFECT",
		"--kubeconfig k --register-with-taints a=b:Never":                 "the effect must be",
		"--kubeconfig k --register-with-taints =b:NoExecute":              "--register-with-taints =b:NoExecute: ",
		"--kubeconfig k --port 0":                                         "--port 0: must be between",
		"--kubeconfig k --tls-cert-file c":                                "belong together",
		"--kubeconfig k --authorization-mode RBAC":                        "--authorization-mode RBAC: must be Webhook or AlwaysAllow",
		"--kubeconfig k --read-only-port 10250":                           "--read-only-port 10250: must be between",
		"--client-ca-file c":                                              "--client-ca-file needs --kubeconfig",
		"--kubeconfig k --authorization-webhook-cache-authorized-ttl -1s": "must not be negative",
	} {
		_, err := clusterOf(t, args)
		if usage := (*exit.UsageError)(nil); err == nil || !errors.As(err, &usage) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", args, err, want)
		}
	}
}
