package eviction

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/podctl/podctl/runtime/admission"
)

// Signal is a resource that can run out.
type Signal string

// The signals, with the kubelet's names.
const (
	MemoryAvailable   Signal = "memory.available"
	NodeFsAvailable   Signal = "nodefs.available"
	NodeFsInodesFree  Signal = "nodefs.inodesFree"
	ImageFsAvailable  Signal = "imagefs.available"
	ImageFsInodesFree Signal = "imagefs.inodesFree"
	PIDAvailable      Signal = "pid.available"
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
	// Quantity is an absolute amount. If nil, the threshold is Percent of the capacity.
	Quantity *resource.Quantity
	Percent  float32
}

// Value returns the amount in the syntax of the flag, such as 100Mi or 10%.
func (t *Threshold) Value() string {
	if t.Quantity != nil {
		return t.Quantity.String()
	}
	return strconv.FormatFloat(float64(t.Percent), 'f', -1, 32) + "%"
}

// Parse parses thresholds such as memory.available<100Mi,nodefs.available<10%. A signal that is not named has no
// threshold, as in the kubelet's flag --eviction-hard. 0% and 100% also mean no threshold.
func Parse(text string) ([]Threshold, error) {
	var all []Threshold
	named := map[Signal]bool{}
	for one := range strings.SplitSeq(text, ",") {
		if one = strings.TrimSpace(one); one == "" {
			continue
		}
		name, value, found := strings.Cut(one, "<")
		signal := Signal(strings.TrimSpace(name))
		switch {
		case !found:
			return nil, fmt.Errorf("%q does not have the form SIGNAL<QUANTITY", one)
		case signal.rank() < 0:
			return nil, fmt.Errorf("unsupported eviction signal %v", signal)
		case named[signal]:
			return nil, fmt.Errorf("%s is given twice", signal)
		}
		named[signal] = true
		t, err := parse(signal, strings.TrimSpace(value))
		if err != nil {
			return nil, err
		}
		if t != nil {
			all = append(all, *t)
		}
	}
	slices.SortStableFunc(all, func(a, b Threshold) int { return a.Signal.rank() - b.Signal.rank() })
	return all, nil
}

// parse parses one threshold. It returns nil for 0% and 100% (kubelet: parseThresholdStatement).
func parse(signal Signal, value string) (*Threshold, error) {
	if number, isPercent := strings.CutSuffix(value, "%"); isPercent {
		percent, err := strconv.ParseFloat(number, 32)
		switch {
		case err != nil:
			return nil, fmt.Errorf("%s: %w", signal, err)
		case percent < 0 || percent > 100:
			return nil, fmt.Errorf("eviction percentage threshold %v must be between 0%% and 100%%: %s", signal, value)
		case percent == 0 || percent == 100:
			return nil, nil // 0% and 100% mean no threshold
		}
		return &Threshold{Signal: signal, Percent: float32(percent)}, nil
	}
	quantity, err := resource.ParseQuantity(value)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s<%s: %w", signal, value, err)
	case quantity.Sign() <= 0:
		return nil, fmt.Errorf("eviction threshold %v must be positive: %s", signal, value)
	}
	return &Threshold{Signal: signal, Quantity: &quantity}, nil
}

// KeptFree returns the amounts of resources that eviction keeps free, and that pods cannot request (kubelet:
// hardEvictionReservation). It is never nil.
func KeptFree(thresholds []Threshold) map[v1.ResourceName]admission.Share {
	free := map[v1.ResourceName]admission.Share{}
	for _, t := range thresholds {
		if t.Signal == MemoryAvailable || t.Signal == NodeFsAvailable {
			free[t.Signal.resource()] = admission.Share{Quantity: t.Quantity, Percent: t.Percent}
		}
	}
	return free
}

// of returns the threshold as an amount (kubelet: GetThresholdQuantity).
func (t *Threshold) of(capacity int64) *resource.Quantity {
	if t.Quantity != nil {
		return t.Quantity
	}
	return resource.NewQuantity(int64(float64(capacity)*float64(t.Percent/100)), resource.BinarySI)
}
