package model_test

import (
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/model/modeltest"
)

func TestFoldReachesTheThreshold(t *testing.T) {
	p := &v1.Probe{FailureThreshold: 2, SuccessThreshold: 1, PeriodSeconds: 10}
	r := model.InitialProbe(model.Liveness)
	r = r.Fold(model.Liveness, p, model.ProbeFailure, modeltest.Noon())
	if r.Result != model.ProbeSuccess || r.Run != 1 {
		t.Errorf("after one failure: %+v", r)
	}
	r = r.Fold(model.Liveness, p, model.ProbeUnknown, modeltest.Noon())
	if r.Run != 1 {
		t.Errorf("a run that could not be judged counted: %+v", r)
	}
	if r.Counts(p, modeltest.Noon().Add(9*time.Second)) || !r.Counts(p, modeltest.Noon().Add(10*time.Second)) {
		t.Error("a run counts once per period")
	}
	r = r.Fold(model.Liveness, p, model.ProbeFailure, modeltest.Noon().Add(10*time.Second))
	if r.Result != model.ProbeFailure || !r.OnHold {
		t.Errorf("after two failures: %+v", r)
	}
	unwatched := time.Time{}
	if r.Stale(p, modeltest.Noon().Add(30*time.Second), unwatched) || !r.Stale(p, modeltest.Noon().Add(31*time.Second), unwatched) {
		t.Error("a failure is stale after failureThreshold periods")
	}
	if late := modeltest.Noon().Add(time.Hour); r.Stale(p, late, r.CountedAt) || !r.Stale(p, late, r.CountedAt.Add(1)) {
		t.Error("a failure is never stale while the probe runs without a break")
	}
}

// TestStaleFailureIsConfirmed checks that one failure confirms a stale failure, that one success cancels it, and that
// a fresh failure stays.
func TestStaleFailureIsConfirmed(t *testing.T) {
	p := &v1.Probe{FailureThreshold: 3, SuccessThreshold: 1, PeriodSeconds: 10}
	for _, kind := range []model.ProbeType{model.Liveness, model.Startup} {
		failed := model.InitialProbe(kind)
		for range 3 {
			failed = failed.Fold(kind, p, model.ProbeFailure, modeltest.Noon())
		}
		if soon := failed.Reopened(p, modeltest.Noon().Add(time.Second), time.Time{}); soon != failed {
			t.Errorf("%s: a fresh failure is open again: %+v", kind, soon)
		}
		late := modeltest.Noon().Add(time.Minute)
		for verdict, onHold := range map[model.ProbeResult]bool{model.ProbeFailure: true, model.ProbeSuccess: kind == model.Startup} {
			if r := failed.Reopened(p, late, time.Time{}).Fold(kind, p, verdict, late); r.Result != verdict ||
				r.OnHold != onHold || r.Stale(p, late, time.Time{}) {
				t.Errorf("%s: after one more %s it is %+v", kind, verdict, r)
			}
		}
	}
}
