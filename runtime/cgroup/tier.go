package cgroup

import (
	"context"
	"errors"
	"path"
	goruntime "runtime"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/opencontainers/cgroups"
)

// tier is one of the cgroups that contain pods.
type tier int

const (
	// other is a cgroup that the user put above all pods.
	other tier = iota
	// top is kubepods, which contains all pods, the guaranteed ones directly.
	top
	burstable
	bestEffort
)

// tierOf returns the tier of a cgroup by its name.
func tierOf(name string) tier {
	last := path.Base(name)
	if slice, ok := strings.CutSuffix(last, ".slice"); ok {
		// The name of a slice begins with the names of its parents.
		last = slice[strings.LastIndex(slice, "-")+1:]
	}
	switch last {
	case "kubepods":
		return top
	case "burstable":
		return burstable
	case "besteffort":
		return bestEffort
	}
	return other
}

// above returns the cgroups that contain one, the outermost first.
func above(name string) []string {
	var names []string
	for dir := path.Dir(name); dir != "/" && dir != "."; dir = path.Dir(dir) {
		names = append(names, dir)
	}
	slices.Reverse(names)
	return names
}

// ensureTier creates a cgroup above pods. It does not change one that has contents, which may belong to a kubelet. It
// sets the weight of an empty one again, because a killed podctl may have left it before it set the weight.
func (t *tree) ensureTier(name string) error {
	if t.exists(name) && !t.empty(name) {
		return nil
	}
	return t.set(name, t.tierResources(tierOf(name), goruntime.NumCPU()))
}

// tierResources returns the resources of a new tier. All pods together weigh as much as the machine has cores. Pods
// without requests have the minimum, and burstable ones what their requests need (kubelet: qosContainerManager).
func (t *tree) tierResources(kind tier, cpus int) *cgroups.Resources {
	r := &cgroups.Resources{}
	switch kind {
	case top:
		t.setShares(r, uint64(max(cpus, 1))*1024)
	case burstable, bestEffort:
		t.setShares(r, minShares)
	case other:
	}
	return r
}

// oneTier lets one goroutine at a time examine a tier and set it, so that a pod does not replace the weight that Limit
// has set.
var oneTier sync.Mutex //nolint:gochecknoglobals // What it guards is one for the process.

func (t *tree) ensureTiers(names []string) error {
	oneTier.Lock()
	defer oneTier.Unlock()
	for _, name := range names {
		if err := t.ensureTier(name); err != nil {
			return err
		}
	}
	return nil
}

func (t *tree) limit(name string, tiers []string, r Resources) error {
	if err := t.ensureTiers(above(name)); err != nil {
		return err
	}
	oneTier.Lock()
	err := t.set(name, t.topResources(r))
	oneTier.Unlock()
	if err == nil {
		err = t.ensureTiers(tiers)
	}
	for _, tier := range tiers {
		t.reweigh(tier) // A pod may have been created in it meanwhile.
	}
	return err
}

// topResources converts limits like translate, but removes no limit that an administrator may have set, and needs no
// controller for processes.
func (t *tree) topResources(r Resources) *cgroups.Resources {
	if !t.has("pids") {
		r.Pids = nil
	}
	out := t.translate(r)
	if out.CpuQuota == noLimit {
		out.CpuQuota = 0
	}
	if out.Memory == noLimit {
		out.Memory = 0
	}
	return out
}

// reweigh sets the weight of the burstable tier to the sum of its pods' requests. It only affects fairness between
// tiers, so a failure is ignored (the kubelet also only logs it).
func (t *tree) reweigh(name string) {
	if tierOf(name) != burstable || !t.exists(name) {
		return
	}
	total, err := t.sharesBelow(name)
	if err != nil {
		return
	}
	r := &cgroups.Resources{}
	t.setShares(r, min(total, maxShares))
	_ = t.set(name, r)
}

// sharesBelow returns the shares for the sum of all requests of the cgroups directly below one. It adds the requests,
// not their shares, because those are rounded (kubelet: setCPUCgroupConfig).
func (t *tree) sharesBelow(name string) (uint64, error) {
	h, ok := t.find("cpu")
	if !ok {
		return 0, nil
	}
	children, err := h.children(name)
	if err != nil {
		return 0, err
	}
	var request uint64
	for _, child := range children {
		request += requestOf(t.sharesOf(h.at(child)))
	}
	return request * 1024 / 1000, nil
}

// sharesOf returns the shares of one cgroup, or 0 if it has just vanished.
func (t *tree) sharesOf(dir string) uint64 {
	file := "cpu.shares"
	if t.unified {
		file = "cpu.weight"
	}
	words := readWords(path.Join(dir, file))
	if len(words) != 1 {
		return 0
	}
	value, err := strconv.ParseUint(words[0], 10, 64)
	if err != nil {
		return 0
	}
	if t.unified {
		return shares(value)
	}
	return value
}

// RemoveTiers removes the cgroups of tiers below a root, and the root, if they are empty. The root of all cgroups (an
// empty root) stays.
func RemoveTiers(ctx context.Context, root string) error {
	t, err := findTree()
	if err != nil {
		return nil //nolint:nilerr // Without cgroups there is nothing to remove.
	}
	names := []string{"kubepods/burstable", "kubepods/besteffort", "kubepods"}
	if root == "" {
		names = append(names,
			"kubepods.slice/kubepods-burstable.slice", "kubepods.slice/kubepods-besteffort.slice", "kubepods.slice")
	}
	var errs []error
	for _, name := range append(names, ".") {
		name = path.Join("/", root, name)
		if name != "/" && t.empty(name) {
			errs = append(errs, t.remove(ctx, name, nil))
		}
	}
	return errors.Join(errs...)
}
