package agent

import (
	"errors"
	"fmt"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/podctl/podctl/runtime/agent/eviction"
	"github.com/podctl/podctl/runtime/agent/housekeeping"
	"github.com/podctl/podctl/runtime/logfile"
)

// housekeepingOptions limit the logs, records and images that pods leave behind. Names and defaults are the kubelet's.
type housekeepingOptions struct {
	logSize string
	logs    logfile.Limits
	records int
	images  housekeeping.Thresholds
}

func (o *housekeepingOptions) addTo(f *pflag.FlagSet) {
	f.StringVar(&o.logSize, "container-log-max-size", "10Mi",
		"Maximum size of a container log before it is rotated (-1: no limit)")
	f.IntVar(&o.logs.Files, "container-log-max-files", 5, "Maximum number of log files per container, at least 2")
	f.IntVar(&o.records, "max-dead-containers", -1,
		"Maximum number of exited containers to keep; "+
			"the last one of a stopped container is always kept (-1: no limit)")
	f.IntVar(&o.images.High, "image-gc-high-threshold", 85,
		"Disk usage in percent that starts the removal of unused images (100: never)")
	f.IntVar(&o.images.Low, "image-gc-low-threshold", 80,
		"Disk usage in percent that ends the removal of unused images")
}

// check checks the flags and returns the limits for logs.
func (o *housekeepingOptions) check() (logfile.Limits, error) {
	size, err := resource.ParseQuantity(o.logSize)
	switch {
	case err != nil:
		return o.logs, fmt.Errorf("--container-log-max-size %q: %w", o.logSize, err)
	case size.IsZero():
		return o.logs, errors.New("--container-log-max-size must not be 0: no log could be written")
	case o.logs.Files < 2:
		return o.logs, fmt.Errorf(
			"--container-log-max-files is %d: there are at least 2, the one that is written and the one before",
			o.logs.Files)
	}
	o.logs.Size = size.Value()
	return o.logs, o.images.Check()
}

// evictionOptions define when pods are evicted. Names and defaults are the kubelet's.
type evictionOptions struct {
	on   bool
	hard string
}

func (o *evictionOptions) addTo(f *pflag.FlagSet) {
	f.BoolVar(&o.on, "eviction", true,
		"Evict pods that exceed their disk limits, or when the machine runs out of memory, disk or process IDs")
	f.StringVar(&o.hard, "eviction-hard", eviction.Default,
		"Eviction thresholds; signals that are not listed have none")
}

// thresholds parses the eviction thresholds. It returns nil if eviction is disabled.
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
