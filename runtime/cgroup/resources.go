package cgroup

import (
	"maps"
	"slices"

	"github.com/opencontainers/cgroups"
)

// Resources are the limits of a pod's cgroup. Nil means no limit, and for
// CPUShares the kernel's default.
type Resources struct {
	// CPUShares is the weight in the units of version 1: 1024 for one core.
	CPUShares *uint64
	// CPUQuota is the time on a core per CPUPeriod, both in microseconds.
	CPUQuota  *int64
	CPUPeriod *uint64
	// Memory is in bytes.
	Memory *int64
	// HugePages maps a page size, as the kernel names it (2MB), to bytes. Sizes
	// that it does not name are not limited.
	HugePages map[string]uint64
}

// noLimit lifts a limit that may have been set before.
const noLimit = -1

// translate puts limits into the library's words, for the version of cgroups
// that the machine has.
func (t *tree) translate(r Resources) *cgroups.Resources {
	out := &cgroups.Resources{CpuQuota: noLimit, Memory: noLimit}
	if r.CPUShares != nil {
		t.setShares(out, *r.CPUShares)
	}
	if r.CPUQuota != nil && *r.CPUQuota > 0 {
		out.CpuQuota = *r.CPUQuota
	}
	if r.CPUPeriod != nil {
		out.CpuPeriod = *r.CPUPeriod
	}
	if r.Memory != nil && *r.Memory > 0 {
		out.Memory = *r.Memory
	}
	if t.has("hugetlb") {
		for _, size := range slices.Sorted(maps.Keys(r.HugePages)) {
			out.HugetlbLimit = append(out.HugetlbLimit, &cgroups.HugepageLimit{Pagesize: size, Limit: r.HugePages[size]})
		}
	}
	return out
}

func (t *tree) setShares(out *cgroups.Resources, shares uint64) {
	if t.unified {
		out.CpuWeight = weight(shares)
		return
	}
	out.CpuShares = max(shares, minShares)
}

// The bounds of cpu shares (version 1) and of cpu weights (version 2).
const (
	minShares = 2
	maxShares = 262144
	minWeight = 1
	maxWeight = 10000
)

// weight turns shares into a weight by the kubelet's formula, which is not the
// library's (kubelet: getCPUWeight).
func weight(shares uint64) uint64 {
	shares = min(max(shares, minShares), maxShares)
	return minWeight + (shares-minShares)*(maxWeight-minWeight)/(maxShares-minShares)
}

// shares turns a weight back into shares, as far as rounding allows: the fewest that have it.
func shares(weight uint64) uint64 {
	weight = min(max(weight, minWeight), maxWeight)
	return minShares + ((weight-minWeight)*(maxShares-minShares)+(maxWeight-minWeight)-1)/(maxWeight-minWeight)
}

// requestOf is the CPU, in thousandths of a core, that a pod with such shares requests. Shares are
// rounded down, and each of them is less than one thousandth, so that there is one such number.
// The least shares are those of a pod that requests nothing (kubelet: MilliCPUToShares).
func requestOf(shares uint64) uint64 {
	if shares <= minShares {
		return 0
	}
	return (shares*1000 + 1023) / 1024
}
