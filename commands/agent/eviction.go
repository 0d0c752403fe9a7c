package agent

import (
	"fmt"

	"github.com/spf13/pflag"

	"github.com/podctl/podctl/runtime/agent/eviction"
)

// evictionOptions say when pods are evicted, with the kubelet's names and values.
type evictionOptions struct {
	on   bool
	hard string
}

func (o *evictionOptions) addTo(f *pflag.FlagSet) {
	f.BoolVar(&o.on, "eviction", true, "Evict pods while the machine runs out of memory, disk or process ids")
	f.StringVar(&o.hard, "eviction-hard", eviction.Default, "What has to be left; a signal that is not named has no threshold")
}

// thresholds reads what has to be left; nothing if no pod is evicted.
func (o *evictionOptions) thresholds() ([]eviction.Threshold, error) {
	all, err := eviction.Parse(o.hard)
	if err != nil {
		return nil, fmt.Errorf("--eviction-hard: %w", err)
	}
	if !o.on {
		return nil, nil
	}
	return all, nil
}
