package agent

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/podctl/podctl/commands/config"
	"github.com/podctl/podctl/commands/exit"
	"github.com/podctl/podctl/runtime/agent/eviction"
	"github.com/podctl/podctl/runtime/imageaccess"
)

// registerHousekeeping defines the limits of the logs, records and images that pods leave behind. Names and defaults
// are those of a kubelet's flags or fields.
func (o *agentOptions) registerHousekeeping(f *pflag.FlagSet) {
	f.StringVar(&o.logSize, "container-log-max-size", "10Mi",
		"Maximum size of a container log before it is rotated (-1: no limit)")
	f.IntVar(&o.Logs.Files, "container-log-max-files", 5, "Maximum number of log files per container, at least 2")
	f.IntVar(&o.MaxRecords, "max-dead-containers", -1,
		"Maximum number of exited containers to keep; "+
			"the last one of a stopped container is always kept (-1: no limit)")
	f.IntVar(&o.Images.High, "image-gc-high-threshold", 85,
		"Disk usage in percent that starts the removal of unused images (100: never)")
	f.IntVar(&o.Images.Low, "image-gc-low-threshold", 80,
		"Disk usage in percent that ends the removal of unused images")
	f.DurationVar(&o.Images.MinAge, "image-minimum-gc-age", 2*time.Minute,
		"Minimum age of an image before it is removed")
	f.DurationVar(&o.Images.MaxAge, "image-maximum-gc-age", 0,
		"Time after which an image that no pod uses is removed, even if the disk is not full (0: never)")
}

// checkHousekeeping checks the flags, and sets the size of logs.
func (o *agentOptions) checkHousekeeping() error {
	size, err := resource.ParseQuantity(o.logSize)
	switch {
	case err != nil:
		return fmt.Errorf("--container-log-max-size %q: %w", o.logSize, err)
	case size.IsZero():
		return errors.New("--container-log-max-size must not be 0: no log could be written")
	case o.Logs.Files < 2:
		return fmt.Errorf(
			"--container-log-max-files is %d: there are at least 2, the one that is written and the one before",
			o.Logs.Files)
	}
	o.Logs.Size = size.Value()
	return o.Images.Check()
}

// limitOptions limit what pods use of the machine. Names and defaults are the kubelet's.
type limitOptions struct {
	config.PodDefaults

	// enforce is the value of --enforce-node-allocatable: pods, none, or nothing for the default.
	enforce []string
}

func (o *limitOptions) addTo(f *pflag.FlagSet) {
	f.Int64Var(&o.PIDs, config.PodPIDsFlag, -1, "Maximum number of processes and threads of a pod (-1: no limit)")
	f.BoolVar(&o.Seccomp, config.SeccompDefaultFlag, false,
		"Use the default seccomp profile of the runtime for containers that set none")
	f.StringVar(&o.Images.Name, config.ImagePolicyFlag, imageaccess.NeverVerifyPreloadedImages,
		"Whether pods of the API server must prove that they could pull a present image: AlwaysVerify, NeverVerify, "+
			"NeverVerifyPreloadedImages, or NeverVerifyAllowlistedImages")
	f.StringVar(&o.Images.Allowlist, config.ImageAllowlistFlag, "",
		"Images of NeverVerifyAllowlistedImages, without tag and digest, such as "+
			"registry.local/app,registry.local/base/*")
	f.StringSliceVar(&o.enforce, enforceFlag, nil,
		"pods: limit all pods together to the resources that --system-reserved leaves; none: do not "+
			"(default pods as a node of a cluster, otherwise none)")
}

// enforceFlag is the name of a flag, and the others are its values.
const enforceFlag, enforcePods, enforceNone = "enforce-node-allocatable", "pods", "none"

// enforces reports whether all pods together are limited.
func (o *limitOptions) enforces(inCluster bool) bool {
	return slices.Equal(o.enforce, []string{enforcePods}) || o.enforce == nil && inCluster
}

func (o *limitOptions) check() error {
	if o.enforce != nil && !o.enforces(false) && !slices.Equal(o.enforce, []string{enforceNone}) {
		return exit.Usagef("--%s %s: must be %s or %s",
			enforceFlag, strings.Join(o.enforce, ","), enforcePods, enforceNone)
	}
	if o.PIDs == 0 || o.PIDs < -1 {
		return exit.Usagef("--%s %d: must be greater than 0, or -1", config.PodPIDsFlag, o.PIDs)
	}
	if err := o.Images.Check(); err != nil {
		return exit.Usagef("--%s and --%s: %v", config.ImagePolicyFlag, config.ImageAllowlistFlag, err)
	}
	return nil
}

// evictionOptions define when pods are evicted. Names and defaults are the kubelet's.
type evictionOptions struct {
	on bool
	eviction.Texts
	eviction.Config
}

func (o *evictionOptions) addTo(f *pflag.FlagSet) {
	f.BoolVar(&o.on, "eviction", true,
		"Evict pods that exceed their disk limits, or when the machine runs out of memory, disk or process IDs")
	f.StringVar(&o.Hard, "eviction-hard", eviction.Default,
		"Eviction thresholds; signals that are not listed have none")
	f.StringVar(&o.Soft, "eviction-soft", "",
		"Eviction thresholds with a grace period, for example memory.available<1Gi")
	f.StringVar(&o.SoftGracePeriod, "eviction-soft-grace-period", "",
		"Time that a soft threshold must be met before pods are evicted, for example memory.available=90s")
	f.StringVar(&o.MinimumReclaim, "eviction-minimum-reclaim", "",
		"Amount above a threshold at which evictions end, for example nodefs.available=1Gi")
	f.DurationVar(&o.Transition, "eviction-pressure-transition-period", eviction.DefaultTransition,
		"Time that a condition of the node lasts after its threshold was last met")
	f.Int64Var(&o.MaxGrace, "eviction-max-pod-grace-period", 0,
		"Maximum grace period in seconds of pods that are evicted for a soft threshold")
}

// config checks the flags. Without eviction, the result has no thresholds.
func (o *evictionOptions) config() (eviction.Config, error) {
	c, err := o.Config, error(nil)
	switch c.Thresholds, err = o.Parse(); {
	case err != nil:
		return c, err
	case c.Transition < 0:
		return c, fmt.Errorf("--eviction-pressure-transition-period is %s: must not be negative", c.Transition)
	case c.MaxGrace < 0 || c.MaxGrace > math.MaxInt32:
		return c, fmt.Errorf("--eviction-max-pod-grace-period is %d: must be between 0 and %d",
			c.MaxGrace, math.MaxInt32)
	case !o.on:
		c.Thresholds = nil
	}
	return c, nil
}
