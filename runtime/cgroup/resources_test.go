package cgroup

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/opencontainers/cgroups"
)

func TestLimitsInBothCgroupVersions(t *testing.T) {
	huge := map[string]uint64{"2MB": 4 << 20, "1GB": 0}
	limits := []*cgroups.HugepageLimit{{Pagesize: "1GB", Limit: 0}, {Pagesize: "2MB", Limit: 4 << 20}}
	all := Resources{
		CPUShares: new(uint64(512)),
		CPUQuota:  new(int64(50000)),
		CPUPeriod: new(uint64(100000)),
		Memory:    new(int64(64 << 20)),
		Pids:      new(int64(100)),
		HugePages: huge,
	}
	tests := map[string]struct {
		tree *tree
		in   Resources
		want cgroups.Resources
	}{
		"everything, version 1": {
			fakeTree(t, "cpu", "hugetlb"), all,
			cgroups.Resources{CpuShares: 512, CpuQuota: 50000, CpuPeriod: 100000, Memory: 64 << 20, PidsLimit: new(int64(100)), HugetlbLimit: limits},
		},
		"everything, version 2": {
			fakeUnified(t, "cpu", "memory", "hugetlb"), all,
			cgroups.Resources{CpuWeight: 20, CpuQuota: 50000, CpuPeriod: 100000, Memory: 64 << 20, PidsLimit: new(int64(100)), HugetlbLimit: limits},
		},
		"a machine without the controller of huge pages": {
			fakeTree(t, "cpu"), all,
			cgroups.Resources{CpuShares: 512, CpuQuota: 50000, CpuPeriod: 100000, Memory: 64 << 20, PidsLimit: new(int64(100))},
		},
		"no limits remove the previous ones": {
			fakeTree(t, "cpu"),
			Resources{CPUShares: new(uint64(2))},
			cgroups.Resources{CpuShares: 2, CpuQuota: -1, Memory: -1},
		},
		"zero means no limit": {
			fakeUnified(t, "cpu"),
			Resources{CPUQuota: new(int64(0)), Memory: new(int64(0)), Pids: new(int64(0))},
			cgroups.Resources{CpuQuota: -1, Memory: -1},
		},
		"shares below the least": {
			fakeTree(t, "cpu"),
			Resources{CPUShares: new(uint64(0))},
			cgroups.Resources{CpuShares: 2, CpuQuota: -1, Memory: -1},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(&test.want, test.tree.translate(test.in)); diff != "" {
				t.Errorf("resources differ (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWeightIsTheKubelets(t *testing.T) {
	for in, want := range map[uint64]uint64{
		0: 1, 2: 1, 10: 1, 102: 4, 512: 20, 1024: 39, 2048: 79, 100000: 3815, 262144: 10000, 1 << 40: 10000,
	} {
		if got := weight(in); got != want {
			t.Errorf("weight(%d) = %d, want %d", in, got, want)
		}
	}
}

func TestSharesAndWeightsRoundTrip(t *testing.T) {
	for w := uint64(1); w <= maxWeight; w++ {
		if got := weight(shares(w)); got != w && got != w-1 {
			t.Fatalf("weight %d became %d shares, and these weight %d", w, shares(w), got)
		}
	}
	if shares(0) != minShares || shares(maxWeight+5) != maxShares {
		t.Errorf("out of bounds are %d and %d shares", shares(0), shares(maxWeight+5))
	}
}

func TestConfigOfBothDrivers(t *testing.T) {
	tests := map[string]struct {
		name string
		want cgroups.Cgroup
	}{
		"cgroupfs":              {"/kubepods/burstable/podu1", cgroups.Cgroup{Path: "/kubepods/burstable/podu1"}},
		"cgroupfs below a root": {"/test/kubepods/podu1", cgroups.Cgroup{Path: "/test/kubepods/podu1"}},
		"systemd": {
			"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-podu_1.slice",
			cgroups.Cgroup{Systemd: true, Name: "kubepods-burstable-podu_1.slice", Parent: "kubepods-burstable.slice"},
		},
		"systemd, the first slice": {"/kubepods.slice", cgroups.Cgroup{Systemd: true, Name: "kubepods.slice", Parent: "-.slice"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			test.want.Resources = &cgroups.Resources{CpuShares: 5, SkipDevices: true, SkipFreezeOnSet: true}
			got := config(test.name, &cgroups.Resources{CpuShares: 5})
			if diff := cmp.Diff(&test.want, got); diff != "" {
				t.Errorf("config differs (-want +got):\n%s", diff)
			}
		})
	}
}
