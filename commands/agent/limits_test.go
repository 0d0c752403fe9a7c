package agent

import (
	"fmt"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// TestEvictionFlags checks the configuration of evictions, and that a wrong flag is an error that names it.
func TestEvictionFlags(t *testing.T) {
	for args, want := range map[string]string{
		"": "5 thresholds, 5m0s, 0",
		"--eviction-hard= --eviction-soft=pid.available<9 --eviction-soft-grace-period=pid.available=1m " +
			"--eviction-minimum-reclaim=pid.available=2 --eviction-pressure-transition-period=30s " +
			"--eviction-max-pod-grace-period=20": "1 thresholds, 30s, 20",
		"--eviction=false --eviction-max-pod-grace-period=20": "0 thresholds, 5m0s, 20",
		"--eviction=false --eviction-hard=x":                  `--eviction-hard: "x"`,
		"--eviction-soft=pid.available<9":                     "--eviction-soft-grace-period: ",
		"--eviction-minimum-reclaim=pid.available=9":          "--eviction-minimum-reclaim: pid.available has no threshold",
		"--eviction-pressure-transition-period=-1s":           "--eviction-pressure-transition-period is -1s",
		"--eviction-max-pod-grace-period=-1":                  "--eviction-max-pod-grace-period is -1",
		"--eviction-max-pod-grace-period=2147483648":          "--eviction-max-pod-grace-period is 2147483648",
	} {
		o, f := evictionOptions{}, pflag.NewFlagSet("agent", pflag.ContinueOnError)
		o.addTo(f)
		if err := f.Parse(strings.Fields(args)); err != nil {
			t.Fatal(err)
		}
		c, err := o.config()
		got := fmt.Sprintf("%d thresholds, %s, %d", len(c.Thresholds), c.Transition, c.MaxGrace)
		if err != nil {
			got = err.Error()
		}
		if !strings.HasPrefix(got, want) {
			t.Errorf("%q: %s, want %s", args, got, want)
		}
	}
}

// TestLimitFlags checks that invalid limits of pods are errors that name the flag.
func TestLimitFlags(t *testing.T) {
	for args, want := range map[string]string{
		"": "in a cluster", "--pod-max-pids=-1": "in a cluster", "--pod-max-pids=100": "in a cluster",
		"--enforce-node-allocatable=none": "off", "--enforce-node-allocatable=pods": "",
		"--enforce-node-allocatable=":                     "--enforce-node-allocatable : must be pods or none",
		"--enforce-node-allocatable=pods,system-reserved": "--enforce-node-allocatable pods,system-reserved: must be pods or none",
		"--pod-max-pids=0":                                "--pod-max-pids 0: must be greater than 0, or -1",
		"--pod-max-pids=-2":                               "--pod-max-pids -2: must be greater than 0, or -1",
	} {
		o, f := limitOptions{}, pflag.NewFlagSet("agent", pflag.ContinueOnError)
		o.addTo(f)
		if err := f.Parse(strings.Fields(args)); err != nil {
			t.Fatal(err)
		}
		got := ""
		if err := o.check(); err != nil {
			got = err.Error()
		} else if !o.enforces(true) {
			got = "off"
		} else if !o.enforces(false) {
			got = "in a cluster"
		}
		if got != want {
			t.Errorf("%q: %s, want %s", args, got, want)
		}
	}
}
