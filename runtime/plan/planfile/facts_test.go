package planfile

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/podspec/digest"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/model/modeltest"
)

// everything returns a world with facts of every kind.
func everything() *model.Observed {
	return &model.Observed{
		Sandboxes: []model.Sandbox{
			{ID: "0123456789abcdef", Attempt: 1, State: model.SandboxReady, IPs: []string{"10.0.0.2", "fd00::2"}, SpecHash: "v1:aa"},
			{ID: "fedcba9876543210", State: model.SandboxNotReady, HostNetwork: true},
		},
		Containers: []model.Container{
			{
				ID:           "app1",
				SandboxID:    "0123456789abcdef",
				Name:         "app",
				RestartCount: 2,
				State:        model.Exited,
				ExitCode:     137,
				Reason:       "OOMKilled",
				Hash:         "12ab",
				SpecHash:     "v1:bbbbbb",
			},
			{ID: "log1", SandboxID: "0123456789abcdef", Name: "log", State: model.Running, LogFull: true},
		},
		Images:        map[string]model.Image{"i:1": {ID: "sha256:cc"}, "i:2": {}},
		Volumes:       map[string]model.Volume{"v": {Prepared: true, Digest: "d1", Wanted: "d2"}, "w": {}},
		VolumesRemain: true,
		CgroupExists:  new(true),
		LogAttempts:   map[string]uint32{"app": 3},
		Reserved:      map[string]uint32{"": 4, "app": 5},
		Memory: model.Memory{
			Backoffs:   map[string]model.Backoff{"app": {Duration: 20 * time.Second}},
			LastRun:    &model.LastRun{Sandbox: "0123456789abcdef"},
			Completion: &model.Completion{Phase: v1.PodFailed},
			Actuated:   &model.Actuated{},
			Probes: map[string]map[model.ProbeType]model.ProbeRecord{
				"log1": {model.Readiness: {Result: model.ProbeSuccess}, model.Startup: {Result: model.ProbeFailure}},
			},
		},
	}
}

// TestFacts checks the lines in files and digests. They are stable.
func TestFacts(t *testing.T) {
	want := facts{
		"sandbox 0123456789ab":        "READY attempt 1 POD 10.0.0.2,fd00::2 v1:aa 0123456789abcdef",
		"sandbox fedcba987654":        "NOTREADY attempt 0 NODE fedcba9876543210",
		"container app (app1)":        "EXITED restarts 2 12ab v1:bbbbbb app1 0123456789abcdef exit code 137 OOMKilled",
		"container log (log1)":        "RUNNING restarts 0 log1 0123456789abcdef log full startup Failure readiness Success",
		"image i:1":                   "sha256:cc",
		"image i:2":                   "absent",
		"volume v":                    "prepared true d1 d2",
		"volume w":                    "prepared false",
		"cgroup":                      "exists true",
		"volumes":                     "exists true",
		"log of app":                  "attempt 3",
		"back-off of app":             "20s",
		"reserved attempt of sandbox": "4",
		"reserved attempt of app":     "5",
		"left running":                digestOf(&model.LastRun{Sandbox: "0123456789abcdef"}),
		"completion":                  "Failed",
		"resources applied":           digestOf(&model.Actuated{}),
	}
	got := factsOf(everything())
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	const digest = "sha256:"
	if sum := digestOf(got); !strings.HasPrefix(sum, digest) || len(sum) != len(digest)+64 || sum != digestOf(factsOf(everything())) {
		t.Errorf("digest %s", sum)
	}
}

// TestTimeMakesNoPlanStale checks that the passing of time makes no plan stale.
func TestTimeMakesNoPlanStale(t *testing.T) {
	later := everything()
	for i := range later.Containers {
		later.Containers[i].FinishedAt = modeltest.Noon()
	}
	later.Sandboxes[0].CreatedAt, later.Memory.StartTime = modeltest.Noon(), modeltest.Noon()
	later.Memory.Backoffs["app"] = model.Backoff{Duration: 20 * time.Second, LastUpdate: modeltest.Noon()}
	later.Ports = map[string]string{"80/TCP": "pod default/other"}
	if diff := cmp.Diff(factsOf(everything()), factsOf(later)); diff != "" {
		t.Errorf("(-before +after)\n%s", diff)
	}
}

func TestEachFactMakesAPlanStale(t *testing.T) {
	for want, change := range map[string]func(o *model.Observed){
		"sandbox 0123456789ab: ready, 10.0.0.2,fd00::2 -> not ready, 10.0.0.9": func(o *model.Observed) {
			o.Sandboxes[0].State, o.Sandboxes[0].IPs = model.SandboxNotReady, []string{"10.0.0.9"}
		},
		"sandbox fedcba987654: gone": func(o *model.Observed) { o.Sandboxes = o.Sandboxes[:1] },
		"container app (app1): exit code 137, OOMKilled -> exit code 1": func(o *model.Observed) {
			o.Containers[0].ExitCode, o.Containers[0].Reason = 1, ""
		},
		"container log (log1): no longer log full": func(o *model.Observed) { o.Containers[1].LogFull = false },
		"container log (log1): no longer readiness Success": func(o *model.Observed) {
			delete(o.Memory.Probes["log1"], model.Readiness)
		},
		"container app (app1): created from another definition": func(o *model.Observed) {
			o.Containers[0].SpecHash = "v1:0000bb"
		},
		"image i:2: no longer absent":        func(o *model.Observed) { o.Images["i:2"] = model.Image{ID: "sha256:0123456"} },
		"image i:1: gone":                    func(o *model.Observed) { delete(o.Images, "i:1") },
		"volume w: not prepared -> prepared": func(o *model.Observed) { o.Volumes["w"] = model.Volume{Prepared: true} },
		"cgroup: there -> missing":           func(o *model.Observed) { o.CgroupExists = new(false) },
		"cgroup: gone":                       func(o *model.Observed) { o.CgroupExists = nil },
		"log of app: attempt 3 -> attempt 4": func(o *model.Observed) { o.LogAttempts["app"] = 4 },
		"back-off of log: new: 10s": func(o *model.Observed) {
			o.Memory.Backoffs["log"] = model.Backoff{Duration: 10 * time.Second}
		},
		"left running: podctl has run another pass": func(o *model.Observed) { o.Memory.LastRun.Sandbox = "other" },
		"left running: gone":                        func(o *model.Observed) { o.Memory.LastRun = nil },
		"completion: Failed -> Succeeded":           func(o *model.Observed) { o.Memory.Completion.Phase = v1.PodSucceeded },
		"resources applied: changed":                func(o *model.Observed) { o.Memory.Actuated.Pod = &v1.ResourceRequirements{} },
		"reserved attempt of sandbox: 4 -> 6":       func(o *model.Observed) { o.Reserved[""] = 6 },
	} {
		now := everything()
		change(now)
		if diff := cmp.Diff([]string{want}, factsOf(everything()).changesTo(factsOf(now))); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
	}
}

// TestPlanDigestsAndBasis checks the two digests, and the basis if the options ask for it.
func TestPlanDigestsAndBasis(t *testing.T) {
	w := modeltest.Running(modeltest.Load(t, modeltest.WebPod))
	in := inputOf(w)
	p := Make(in)
	if p.DesiredDigest != w.Desired.Digest() || p.ObservedDigest != digestOf(factsOf(&w.Observed)) || p.Basis != nil {
		t.Errorf("%s, %s, %v", p.DesiredDigest, p.ObservedDigest, p.Basis)
	}
	in.Options.KeepBasis = true
	if p := Make(in); p.Basis == nil || p.Basis.Desired.Pod.Name != "web" || len(p.Basis.Observed) != 5 {
		t.Errorf("%+v", p.Basis)
	}
	in.Desired = nil
	if p := Make(in); p.DesiredDigest != w.Desired.Digest() && p.Basis.Desired != nil {
		t.Errorf("a deletion has %+v", p.Basis)
	}
}

// TestBasisThatIsMissing checks that without a basis only the staleness is reported.
func TestBasisThatIsMissing(t *testing.T) {
	saved := savedCopy(t, inputOf(modeltest.Running(modeltest.Load(t, modeltest.WebPod))))
	saved.Basis = nil
	now := modeltest.Running(modeltest.Load(t, strings.Replace(modeltest.WebPod, "i:1", "i:2", 1)))
	now.End("app", 1, time.Second)
	_, err := MakeAgain(inputOf(now), saved)
	if err == nil || !strings.Contains(err.Error(), "the manifest changed\n  the observed state changed") {
		t.Errorf("%v", err)
	}
}

// TestSecretsOfAnotherKeyCannotBeCompared checks that this is reported instead of a change.
func TestSecretsOfAnotherKeyCannotBeCompared(t *testing.T) {
	text := "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {k: hunter2}\n---\n" +
		modeltest.Pod("  containers: [{name: app, image: i:1, envFrom: [{secretRef: {name: s}}]}]\n")
	saved := savedCopy(t, inputOf(modeltest.New(modeltest.Load(t, text))))
	other := modeltest.Load(t, text)
	other.UseKey(digest.NewKey([]byte("another key of 32 bytes, just so.")))
	now := savedCopy(t, inputOf(modeltest.New(other)))
	want := []string{
		"manifest: the values of its Secrets cannot be compared, " +
			"because the plan was saved with another key for their digests",
	}
	if diff := cmp.Diff(want, changesSince(saved, now)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	now = savedCopy(t, inputOf(modeltest.New(modeltest.Load(t, text))))
	now.DesiredDigest = "another"
	if diff := cmp.Diff([]string{"the manifest changed"}, changesSince(saved, now)); diff != "" {
		t.Errorf("no field differs: (-want +got)\n%s", diff)
	}
}
