//go:build e2e

package cgroup

import (
	"context"
	"errors"
	"testing"
)

// TestLimitsOfAllPods checks that the limits of all pods together stay when pods come and go, and that they are not set
// while the pods use more.
func TestLimitsOfAllPods(t *testing.T) {
	tr, root := realTree(t)
	top := root + "/kubepods"
	tiers := []string{top + "/besteffort", top + "/burstable"}
	r := Resources{CPUShares: new(uint64(700)), Memory: new(int64(512 << 20)), Pids: new(int64(4321))}
	for range 2 {
		if err := (Machine{}).Limit(top, tiers, r); err != nil {
			t.Fatal(err)
		}
	}
	check := func() {
		t.Helper()
		limits{700, -1, 512 << 20}.want(t, tr, top)
		if got := taskLimit.of(t, tr, top); got != "4321" {
			t.Errorf("pids.max is %s", got)
		}
	}
	check()
	if err := (Machine{}).Ensure(top+"/podu1", Resources{CPUShares: new(uint64(300))}); err != nil {
		t.Fatal(err)
	}
	check()
	if err := (Machine{}).Remove(context.Background(), top+"/podu1"); err != nil {
		t.Fatal(err)
	}
	check()
	if err := (Machine{}).Limit(top, tiers, Resources{}); err != nil {
		t.Fatal(err)
	}
	check()
	inUse := (*InUseError)(nil)
	if err := (Machine{}).Limit("/", nil, r); err == nil {
		t.Error("the root was limited")
	}
	if tr.unified {
		t.Skip("no process can join the cgroup of all pods")
	}
	release := holdMemory(t, tr, top)
	if err := (Machine{}).Limit(top, tiers, Resources{Memory: new(int64(4096))}); !errors.As(err, &inUse) || inUse.Limit != 4096 {
		t.Errorf("pods in use: %v", err)
	}
	check()
	release()
}
