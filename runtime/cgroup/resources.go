package cgroup

import (
	"maps"
	"slices"

	"github.com/opencontainers/cgroups"
)

// Resources are the limits of a pod's cgroup. Nil means no limit, and for CPUShares the kernel's default.
type Resources struct {
	// CPUShares is the weight in the units of version 1: 1024 for one core.
	CPUShares *uint64
	// CPUQuota is the CPU time per CPUPeriod, both in microseconds.
	CPUQuota  *int64
	CPUPeriod *uint64
	// Memory is in bytes.
	Memory *int64
	// Pids is the number of tasks.
	Pids *int64
	// HugePages maps a page size with the kernel's name (2MB) to bytes. Other sizes are not limited.
	HugePages map[string]uint64
}

// noLimit removes an earlier limit.
const noLimit = -1

// translate converts limits to the library's form for the machine's version of cgroups.
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
	if r.Pids != nil && *r.Pids > 0 {
		out.PidsLimit = r.Pids
	}
	if t.has("hugetlb") {
		for _, size := range slices.Sorted(maps.Keys(r.HugePages)) {
			out.HugetlbLimit = append(out.HugetlbLimit, &cgroups.HugepageLimit{
				Pagesize: size,
				Limit:    r.HugePages[size],
			})
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

// Limits of cpu shares (version 1) and of cpu weights (version 2).
const (
	minShares = 2
	maxShares = 262144
	minWeight = 1
	maxWeight = 10000
)

// weight converts shares to a weight with the kubelet's formula, which differs from the library's (kubelet:
// getCPUWeight).
func weight(shares uint64) uint64 {
	shares = min(max(shares, minShares), maxShares)
	return minWeight + (shares-minShares)*(maxWeight-minWeight)/(maxShares-minShares)
}

// shares converts a weight back to the smallest shares with this weight.
func shares(weight uint64) uint64 {
	weight = min(max(weight, minWeight), maxWeight)
	return minShares + ((weight-minWeight)*(maxShares-minShares)+(maxWeight-minWeight)-1)/(maxWeight-minWeight)
}

// requestOf returns the CPU request, in thousandths of a core, of a pod with these shares. Shares are rounded down and
// each is less than one thousandth, so the result is unique. The minimum of shares is for a pod without a request
// (kubelet: MilliCPUToShares).
func requestOf(shares uint64) uint64 {
	if shares <= minShares {
		return 0
	}
	return (shares*1000 + 1023) / 1024
}
