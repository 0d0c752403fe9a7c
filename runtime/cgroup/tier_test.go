package cgroup

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/opencontainers/cgroups"
)

func TestCgroupsAboveAPod(t *testing.T) {
	tests := map[string]struct {
		name  string
		want  []string
		tiers []tier
	}{
		"guaranteed":   {"/kubepods/podu1", []string{"/kubepods"}, []tier{top}},
		"burstable":    {"/kubepods/burstable/podu1", []string{"/kubepods", "/kubepods/burstable"}, []tier{top, burstable}},
		"best effort":  {"/kubepods/besteffort/podu1", []string{"/kubepods", "/kubepods/besteffort"}, []tier{top, bestEffort}},
		"below a root": {"/ci/kubepods/podu1", []string{"/ci", "/ci/kubepods"}, []tier{other, top}},
		"systemd": {
			"/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-podu_1.slice",
			[]string{"/kubepods.slice", "/kubepods.slice/kubepods-besteffort.slice"},
			[]tier{top, bestEffort},
		},
		"systemd, burstable": {
			"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-podu_1.slice",
			[]string{"/kubepods.slice", "/kubepods.slice/kubepods-burstable.slice"},
			[]tier{top, burstable},
		},
		"systemd, below a root": {
			"/ci_1.slice/ci_1-kubepods.slice/ci_1-kubepods-burstable.slice/ci_1-kubepods-burstable-podu_1.slice",
			[]string{"/ci_1.slice", "/ci_1.slice/ci_1-kubepods.slice", "/ci_1.slice/ci_1-kubepods.slice/ci_1-kubepods-burstable.slice"},
			[]tier{other, top, burstable},
		},
		"nothing above": {"/podu1", nil, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := above(test.name)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("above differ (-want +got):\n%s", diff)
			}
			var tiers []tier
			for _, name := range got {
				tiers = append(tiers, tierOf(name))
			}
			if diff := cmp.Diff(test.tiers, tiers); diff != "" {
				t.Errorf("tiers differ (-want +got):\n%s", diff)
			}
		})
	}
}

func TestNewTiersHaveTheKubeletsWeights(t *testing.T) {
	v1, v2 := fakeTree(t, "cpu"), fakeUnified(t, "cpu")
	tests := map[string]struct {
		tree *tree
		kind tier
		cpus int
		want cgroups.Resources
	}{
		"all pods, version 1":    {v1, top, 4, cgroups.Resources{CpuShares: 4096}},
		"all pods, version 2":    {v2, top, 4, cgroups.Resources{CpuWeight: 157}},
		"no cores are known":     {v1, top, 0, cgroups.Resources{CpuShares: 1024}},
		"best effort, version 1": {v1, bestEffort, 4, cgroups.Resources{CpuShares: 2}},
		"best effort, version 2": {v2, bestEffort, 4, cgroups.Resources{CpuWeight: 1}},
		"burstable, still empty": {v1, burstable, 4, cgroups.Resources{CpuShares: 2}},
		"the user's own":         {v1, other, 4, cgroups.Resources{}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(&test.want, test.tree.tierResources(test.kind, test.cpus)); diff != "" {
				t.Errorf("resources differ (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSharesOfPodsAddUp(t *testing.T) {
	const tierName = "/kubepods/burstable"
	pods := func(t *testing.T, tr *tree, file string, values ...string) *tree {
		t.Helper()
		for i, value := range values {
			writeFile(t, filepath.Join(tr.hierarchies[0].at(tierName), "pod"+string(rune('a'+i)), file), value+"\n")
		}
		return tr
	}
	tests := map[string]struct {
		tree *tree
		want uint64
	}{
		"version 1":               {pods(t, fakeTree(t, "cpu"), "cpu.shares", "102", "512", "2"), 614}, // for 100m, 500m and no request
		"many that are rounded":   {pods(t, fakeTree(t, "cpu"), "cpu.shares", "102", "102", "102", "102", "102", "3"), 515},
		"version 2":               {pods(t, fakeUnified(t, "cpu"), "cpu.weight", "39", "1"), shares(39)},
		"no pods":                 {fakeTree(t, "cpu"), 0},
		"no controller":           {fakeTree(t, "memory"), 0},
		"a pod that is vanishing": {pods(t, fakeTree(t, "cpu"), "cpu.other", "102"), 0},
		"not a number":            {pods(t, fakeTree(t, "cpu"), "cpu.shares", "102", "many"), 102},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := test.tree.sharesBelow(tierName)
			if err != nil || got != test.want {
				t.Errorf("sharesBelow = %d, %v; want %d", got, err, test.want)
			}
		})
	}
}

// TestRequestsFromShares checks that requests of at least 3m can be computed from their shares.
func TestRequestsFromShares(t *testing.T) {
	for request := uint64(3); request < 200_000; request++ {
		if got := requestOf(request * 1024 / 1000); got != request {
			t.Fatalf("shares of %dm lead to %dm", request, got)
		}
	}
	for weighs := uint64(minWeight); weighs <= maxWeight; weighs++ {
		if got := weight(shares(weighs)); got != weighs {
			t.Fatalf("weight %d comes back as %d", weighs, got)
		}
	}
}
