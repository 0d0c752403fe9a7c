package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/podctl/podctl/commands/terminal"
)

// admitting loads the flags of a command that admits pods, from a configuration file, the environment and the command
// line. Without a command, no command has these flags.
func admitting(
	t *testing.T, enforce bool, file string, environment map[string]string, args ...string,
) (*Admission, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	a, f := &Admission{}, &Flags{}
	global, own := pflag.NewFlagSet("global", pflag.ContinueOnError), pflag.NewFlagSet("own", pflag.ContinueOnError)
	f.Register(global)
	a.Register(own, enforce)
	if err := own.Parse(args); err != nil {
		return a, err
	}
	env := &terminal.Env{Getenv: func(name string) string { return environment[name] }, SystemConfig: path}
	return a, f.Load(SettingsOf(global, own), Sections{"agent": own}, env)
}

// TestAdmissionFlags checks that the settings come from a file, the environment and the command line, and for the agent
// also from its section.
func TestAdmissionFlags(t *testing.T) {
	const file = "admission: true\nmax-pods: 5\nsystem-reserved: cpu=500m, memory=1Gi\n" +
		"allowed-unsafe-sysctls: kernel.msg*,net.core.somaxconn\nnode-labels: disk=ssd,zone=\n"
	for name, c := range map[string]struct {
		enforce     bool
		file        string
		environment map[string]string
		args        []string
		want        string
	}{
		"nothing, and it is off": {false, "", nil, nil, "off"},
		"nothing, and it is on":  {true, "", nil, nil, "max-pods=110"},
		"a file": {
			false, file, nil, nil,
			"max-pods=5, reserved cpu=500m, reserved memory=1Gi, sysctl kernel.msg*, sysctl net.core.somaxconn, " +
				"label disk=ssd, label zone=",
		},
		"a file that turns it off": {true, "admission: false\n", nil, nil, "off"},
		"the environment": {
			false, "admission: false\n",
			map[string]string{"PODCTL_ADMISSION": "true", "PODCTL_MAX_PODS": "7"},
			nil,
			"max-pods=7",
		},
		"the command line": {
			false, "max-pods: 5\n", nil, []string{"--enforce-allocatable", "--max-pods=9"}, "max-pods=9",
		},
		"the agent's own map":       {true, "max-pods: 5\nagent:\n  max-pods: 6\n", nil, nil, "max-pods=6"},
		"which turns it off for it": {true, "admission: true\nagent: {admission: false}\n", nil, nil, "off"},
	} {
		a, err := admitting(t, c.enforce, c.file, c.environment, c.args...)
		got := "off"
		if a.Admit {
			got = a.String()
		}
		if err != nil || got != c.want {
			t.Errorf("%s: %q, %v; want %q", name, got, err, c.want)
		}
	}
	for file, want := range map[string]string{
		"enforce-allocatable: true\n": `config.yaml:1: unknown key "enforce-allocatable"`,
		"system-reserved: memroy=1Gi\n": "config.yaml:1: system-reserved: memroy cannot be reserved: " +
			"only cpu, memory, ephemeral-storage and pid can",
		"system-reserved: cpu\n":    `"cpu" is not of the form NAME=VALUE`,
		"system-reserved: cpu=-1\n": "cpu=-1: it must not be negative",
		"\nallowed-unsafe-sysctls: vm.swappiness\n": `config.yaml:2: allowed-unsafe-sysctls: sysctl "vm.swappiness": ` +
			"vm.swappiness is not known to belong to a namespace of the pod",
		"max-pods: many\n": "config.yaml:1: max-pods:",
	} {
		if _, err := admitting(t, false, file, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", file, err, want)
		}
	}
}

// TestEveryAdmissionFlagIsDescribed checks that docs/configuration.md describes every flag.
func TestEveryAdmissionFlagIsDescribed(t *testing.T) {
	page, err := os.ReadFile("../../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	set := pflag.NewFlagSet("test", pflag.ContinueOnError)
	(&Admission{}).Register(set, false)
	set.VisitAll(func(f *pflag.Flag) {
		if !strings.Contains(string(page), "\n| `"+keyOf(f)+"` |") {
			t.Errorf("docs/configuration.md does not describe %s", keyOf(f))
		}
	})
}
