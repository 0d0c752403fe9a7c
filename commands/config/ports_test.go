package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/podctl/podctl/commands/terminal"
	"github.com/podctl/podctl/runtime/imageaccess"
)

// TestReservedPorts checks that SSH and DHCP are reserved unless the configuration has another list. The ports on
// which the agent and the server of a node listen are always reserved.
func TestReservedPorts(t *testing.T) {
	for file, want := range map[string]string{
		"":                                       "22/TCP 68/UDP 546/UDP",
		"reserved-ports: ''\n":                   "",
		"reserved-ports: 2222, 53/udp,9/SCTP\n":  "2222/TCP 53/UDP 9/SCTP",
		"agent: {listen: ':9100'}\n":             "22/TCP 68/UDP 546/UDP 9100/TCP",
		"agent: {listen: '127.0.0.1:0'}\n":       "22/TCP 68/UDP 546/UDP",
		"agent: {port: 10251}\n":                 "22/TCP 68/UDP 546/UDP",
		"agent: {kubeconfig: /k}\n":              "22/TCP 68/UDP 546/UDP 10250/TCP",
		"agent: {kubeconfig: /k, port: 10251}\n": "22/TCP 68/UDP 546/UDP 10251/TCP",
		"reserved-ports: ssh\n":                  "error",
		"reserved-ports: 0\n":                    "error",
		"reserved-ports: 22/ICMP\n":              "error",
		"reserved-ports: 65536\n":                "error",
	} {
		path := filepath.Join(t.TempDir(), "config.yaml")
		if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
			t.Fatal(err)
		}
		f := &Flags{}
		global := pflag.NewFlagSet("global", pflag.ContinueOnError)
		agent := pflag.NewFlagSet("agent", pflag.ContinueOnError)
		f.Register(global)
		agent.String("listen", "", "")
		agent.String("kubeconfig", "", "")
		agent.Int("port", NodePort, "")
		var got []string
		env := &terminal.Env{Getenv: func(string) string { return "" }, SystemConfig: path}
		if err := f.Load(global, Sections{"agent": agent}, env); err != nil {
			got = []string{"error"}
		} else {
			for _, r := range f.ReservedPorts() {
				got = append(got, r.String())
			}
		}
		if text := strings.Join(got, " "); text != want {
			t.Errorf("%q: %s, want %s", file, text, want)
		}
	}
}

// TestPodDefaults checks that commands without the flags of the agent read their values in the configuration.
func TestPodDefaults(t *testing.T) {
	for file, want := range map[string]PodDefaults{
		"":                                 {},
		"agent: {pod-max-pids: 100}\n":     {PIDs: 100},
		"agent: {pod-max-pids: 0x10}\n":    {PIDs: 16},
		"agent: {seccomp-default: true}\n": {Seccomp: true},
		"agent:\n  " + ImagePolicyFlag + ": NeverVerifyAllowlistedImages\n  " + ImageAllowlistFlag + ": a/b,c/*\n": {
			Images: imageaccess.Policy{Name: imageaccess.NeverVerifyAllowlistedImages, Allowlist: "a/b,c/*"},
		},
	} {
		path := filepath.Join(t.TempDir(), "config.yaml")
		if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
			t.Fatal(err)
		}
		f := &Flags{}
		agent := pflag.NewFlagSet("agent", pflag.ContinueOnError)
		agent.Int64(PodPIDsFlag, -1, "")
		agent.Bool(SeccompDefaultFlag, false, "")
		agent.String(ImagePolicyFlag, "", "")
		agent.String(ImageAllowlistFlag, "", "")
		env := &terminal.Env{Getenv: func(string) string { return "" }, SystemConfig: path}
		if err := f.Load(pflag.NewFlagSet("global", pflag.ContinueOnError), Sections{"agent": agent}, env); err != nil {
			t.Fatal(err)
		}
		if got := f.PodDefaults(); got != want {
			t.Errorf("%q: %+v, want %+v", file, got, want)
		}
	}
}
