package eviction

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/podctl/podctl/runtime/admission"
)

// Signal is a resource that can run out.
type Signal string

// The signals, with the kubelet's names.
const (
	MemoryAvailable            Signal = "memory.available"
	AllocatableMemoryAvailable Signal = "allocatableMemory.available"
	NodeFsAvailable            Signal = "nodefs.available"
	NodeFsInodesFree           Signal = "nodefs.inodesFree"
	ImageFsAvailable           Signal = "imagefs.available"
	ImageFsInodesFree          Signal = "imagefs.inodesFree"
	PIDAvailable               Signal = "pid.available"
)

// Default are the kubelet's thresholds (DefaultEvictionHard), in the syntax of the flag.
const Default = "memory.available<100Mi,nodefs.available<10%,nodefs.inodesFree<5%," +
	"imagefs.available<15%,imagefs.inodesFree<5%"

// The kubelet's names for resources that pods cannot request.
const (
	inodes v1.ResourceName = "inodes"
	pids   v1.ResourceName = "pids"
)

// meaning is the resource and condition of a signal.
type meaning struct {
	signal    Signal
	resource  v1.ResourceName
	condition v1.NodeConditionType
}

// meanings returns all signals in the order in which they are handled: memory comes first (kubelet: byEvictionPriority,
// signalToResource, signalToNodeCondition).
func meanings() []meaning {
	return []meaning{
		{MemoryAvailable, v1.ResourceMemory, v1.NodeMemoryPressure},
		{AllocatableMemoryAvailable, v1.ResourceMemory, v1.NodeMemoryPressure},
		{NodeFsAvailable, v1.ResourceEphemeralStorage, v1.NodeDiskPressure},
		{NodeFsInodesFree, inodes, v1.NodeDiskPressure},
		{ImageFsAvailable, v1.ResourceEphemeralStorage, v1.NodeDiskPressure},
		{ImageFsInodesFree, inodes, v1.NodeDiskPressure},
		{PIDAvailable, pids, v1.NodePIDPressure},
	}
}

// rank returns the position of a signal in that order. It is negative for an unknown signal.
func (s Signal) rank() int {
	return slices.IndexFunc(meanings(), func(m meaning) bool { return m.signal == s })
}

func (s Signal) resource() v1.ResourceName { return meanings()[s.rank()].resource }

func (s Signal) condition() v1.NodeConditionType { return meanings()[s.rank()].condition }

// Threshold is the amount of a resource that must be available.
type Threshold struct {
	Signal Signal
	admission.Share
	// Grace is how long a soft threshold may be met before pods are evicted. It is zero for a hard threshold.
	Grace time.Duration
	// MinReclaim is the amount above the threshold that must be available again once pods are evicted for it.
	MinReclaim admission.Share
}

// quantity returns the threshold as an amount.
func (t *Threshold) quantity(capacity int64) *resource.Quantity { return new(t.Of(capacity)) }

// Config has the thresholds of a machine and what they share.
type Config struct {
	Thresholds []Threshold
	// Transition is how long a condition of the node lasts after its threshold was last met.
	Transition time.Duration
	// MaxGrace limits the grace period of pods that are evicted because of a soft threshold, in seconds.
	MaxGrace int64
}

// Texts are the thresholds in the syntax of the kubelet's flags.
type Texts struct{ Hard, Soft, SoftGracePeriod, MinimumReclaim string }

// Parse parses and checks the thresholds, and returns them in the order in which they are handled (kubelet:
// ParseThresholdConfig).
func (t Texts) Parse() ([]Threshold, error) {
	hard, err := parse(t.Hard)
	if err != nil {
		return nil, fmt.Errorf("--eviction-hard: %w", err)
	}
	soft, err := parse(t.Soft)
	if err != nil {
		return nil, fmt.Errorf("--eviction-soft: %w", err)
	}
	if err = setGracePeriods(soft, t.SoftGracePeriod); err != nil {
		return nil, fmt.Errorf("--eviction-soft-grace-period: %w", err)
	}
	all := append(hard, soft...)
	if err = setReclaims(all, t.MinimumReclaim); err != nil {
		return nil, fmt.Errorf("--eviction-minimum-reclaim: %w", err)
	}
	return inOrder(all), nil
}

// inOrder sorts thresholds by their signals. The hard threshold of a signal stays before the soft one.
func inOrder(all []Threshold) []Threshold {
	slices.SortStableFunc(all, func(a, b Threshold) int { return a.Signal.rank() - b.Signal.rank() })
	return all
}

// WithAllocatable returns the thresholds with those of the memory of all pods together: hard thresholds of the memory
// of the machine apply to both (kubelet: addAllocatableThresholds).
func WithAllocatable(thresholds []Threshold) []Threshold {
	all := slices.Clone(thresholds)
	for _, t := range thresholds {
		if t.Signal == MemoryAvailable && t.Grace == 0 {
			t.Signal = AllocatableMemoryAvailable
			all = append(all, t)
		}
	}
	return inOrder(all)
}

// parse parses thresholds such as memory.available<100Mi,nodefs.available<10%. A signal that is not named has no
// threshold, as in the kubelet's flag --eviction-hard. 0% and 100% also mean no threshold.
func parse(text string) ([]Threshold, error) {
	all := []Threshold{}
	err := eachSignal(text, "<", "QUANTITY", func(signal Signal, value string) error {
		if value == "0%" || value == "100%" {
			return nil
		}
		share, err := parseShare(value)
		if err == nil && share.Quantity != nil && share.Quantity.IsZero() {
			err = errors.New("must be positive")
		}
		if err != nil {
			return fmt.Errorf("eviction threshold %s<%s: %w", signal, value, err)
		}
		if share.Quantity != nil || share.Percent > 0 {
			all = append(all, Threshold{Signal: signal, Share: share})
		}
		return nil
	})
	return all, err
}

// setGracePeriods sets the grace period of each soft threshold (kubelet: parseGracePeriods).
func setGracePeriods(soft []Threshold, text string) error {
	periods := map[Signal]time.Duration{}
	err := eachSignal(text, "=", "DURATION", func(signal Signal, value string) (err error) {
		if periods[signal], err = time.ParseDuration(value); err == nil && periods[signal] < 0 {
			err = fmt.Errorf("%s=%s: must not be negative", signal, value)
		}
		return err
	})
	if err != nil {
		return err
	}
	for i := range soft {
		grace, found := periods[soft[i].Signal]
		if !found {
			return fmt.Errorf("grace period must be specified for the soft eviction threshold %v", soft[i].Signal)
		}
		soft[i].Grace = grace
		delete(periods, soft[i].Signal)
	}
	return unused(periods, "soft threshold")
}

// setReclaims sets the minimum reclaim of the thresholds of each signal (kubelet: parseMinimumReclaims).
func setReclaims(all []Threshold, text string) error {
	reclaims := map[Signal]admission.Share{}
	err := eachSignal(text, "=", "QUANTITY", func(signal Signal, value string) (err error) {
		if reclaims[signal], err = parseShare(value); err != nil {
			err = fmt.Errorf("%s=%s: %w", signal, value, err)
		}
		return err
	})
	if err != nil {
		return err
	}
	for i := range all {
		all[i].MinReclaim = reclaims[all[i].Signal]
	}
	for i := range all {
		delete(reclaims, all[i].Signal)
	}
	return unused(reclaims, "threshold")
}

// unused returns an error if a list has a signal without a threshold.
func unused[T any](left map[Signal]T, what string) error {
	for _, signal := range slices.Sorted(maps.Keys(left)) {
		return fmt.Errorf("%s has no %s", signal, what)
	}
	return nil
}

// eachSignal calls a function for each entry of a list of the form SIGNAL<VALUE or SIGNAL=VALUE.
func eachSignal(text, separator, kind string, do func(signal Signal, value string) error) error {
	named := map[Signal]bool{}
	for one := range strings.SplitSeq(text, ",") {
		if one = strings.TrimSpace(one); one == "" {
			continue
		}
		name, value, found := strings.Cut(one, separator)
		signal := Signal(strings.TrimSpace(name))
		switch {
		case !found:
			return fmt.Errorf("%q does not have the form SIGNAL%s%s", one, separator, kind)
		case signal.rank() < 0:
			return fmt.Errorf("unsupported eviction signal %v", signal)
		case named[signal]:
			return fmt.Errorf("%s is given twice", signal)
		}
		named[signal] = true
		if err := do(signal, strings.TrimSpace(value)); err != nil {
			return err
		}
	}
	return nil
}

// parseShare parses a quantity or a percentage (kubelet: parseThresholdStatement).
func parseShare(value string) (admission.Share, error) {
	if number, isPercent := strings.CutSuffix(value, "%"); isPercent {
		percent, err := strconv.ParseFloat(number, 32)
		if err == nil && !(percent >= 0 && percent <= 100) {
			err = errors.New("must be between 0% and 100%")
		}
		return admission.Share{Percent: float32(percent)}, err
	}
	quantity, err := resource.ParseQuantity(value)
	if err == nil && quantity.Sign() < 0 {
		err = errors.New("must not be negative")
	}
	return admission.Share{Quantity: &quantity}, err
}

// KeptFree returns the amounts of resources that hard thresholds keep free, and that pods cannot request (kubelet:
// hardEvictionReservation). It is never nil.
func KeptFree(thresholds []Threshold) map[v1.ResourceName]admission.Share {
	free := map[v1.ResourceName]admission.Share{}
	for _, t := range thresholds {
		if t.Grace == 0 && (t.Signal == MemoryAvailable || t.Signal == NodeFsAvailable) {
			free[t.Signal.resource()] = t.Share
		}
	}
	return free
}
