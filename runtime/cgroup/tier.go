package cgroup

import (
	"context"
	"errors"
	"path"
	goruntime "runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/opencontainers/cgroups"
)

// tier is one of the cgroups that pods lie in.
type tier int

const (
	// other is a cgroup that the user put above all pods.
	other tier = iota
	// top is kubepods, in which all pods lie, the guaranteed ones directly.
	top
	burstable
	bestEffort
)

// tierOf returns what a cgroup is, by its name.
func tierOf(name string) tier {
	last := path.Base(name)
	if slice, ok := strings.CutSuffix(last, ".slice"); ok {
		// The name of a slice begins with those that it lies in.
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

// above lists the cgroups in which one lies, the outermost first.
func above(name string) []string {
	var names []string
	for dir := path.Dir(name); dir != "/" && dir != "."; dir = path.Dir(dir) {
		names = append(names, dir)
	}
	slices.Reverse(names)
	return names
}

// ensureTier creates a cgroup above pods. One that has something in it belongs to
// whoever made it, a kubelet perhaps, and is not changed; an empty one gets the weight
// again, for it may be what a podctl left that was killed before it had set that.
func (t *tree) ensureTier(name string) error {
	if t.exists(name) && !t.empty(name) {
		return nil
	}
	return t.set(name, t.tierResources(tierOf(name), goruntime.NumCPU()))
}

// tierResources are what a new tier gets: all pods together weigh as much as the
// machine has cores, those that ask for nothing the least there is, and
// burstable ones what the pods in them will ask for (kubelet: qosContainerManager).
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

// reweigh gives the burstable tier the weight of what the pods in it request together. It is
// a courtesy among tiers: a pod runs well enough without, so that nothing fails
// for it (the kubelet, too, only logs it).
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

// sharesBelow is the shares of all requests of the cgroups directly below one: requests are added
// up, and not their shares, which are rounded (kubelet: setCPUCgroupConfig).
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

// sharesOf reads the shares of one cgroup; 0 when it has just vanished.
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

// RemoveTiers removes the cgroups in which pods lay below a root, and the root, as far as nothing is in them. An empty root is that of
// all cgroups, which stays.
func RemoveTiers(ctx context.Context, root string) error {
	t, err := findTree()
	if err != nil {
		return nil //nolint:nilerr // Without cgroups there is nothing to remove.
	}
	names := []string{"kubepods/burstable", "kubepods/besteffort", "kubepods"}
	if root == "" {
		names = append(names, "kubepods.slice/kubepods-burstable.slice", "kubepods.slice/kubepods-besteffort.slice", "kubepods.slice")
	}
	var errs []error
	for _, name := range append(names, ".") {
		name = path.Join("/", root, name)
		if name != "/" && t.empty(name) {
			errs = append(errs, t.remove(ctx, name))
		}
	}
	return errors.Join(errs...)
}
