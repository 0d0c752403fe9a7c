package runtime

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/executor"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/plan"
	"github.com/podctl/podctl/runtime/state"
)

// TestDamagedCheckpoints checks that a truncated checkpoint is refused with a message, and that one with a flipped bit
// is refused or harmless. No container stops or starts.
func TestDamagedCheckpoints(t *testing.T) {
	f := newFaultLab(t, faultShape{before: faultShapes()["two containers"].after})
	pod := f.layout.Pod(model.RefOf(f.load(f.shape.before).Pod).UID)
	good, err := os.ReadFile(pod.Checkpoint().Path())
	if err != nil {
		t.Fatal(err)
	}
	running := f.ids()
	try := func(name string, text []byte) error {
		if err := os.WriteFile(pod.Checkpoint().Path(), text, 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := f.once(f.shape.before)
		unusable := (*state.CheckpointError)(nil)
		if err != nil && (!errors.As(err, &unusable) ||
			!strings.Contains(err.Error(), "pod default/web") || !strings.Contains(err.Error(), "remove the file")) {
			t.Errorf("%s: %v", name, err)
		}
		if writeErr := os.WriteFile(pod.Checkpoint().Path(), good, 0o600); writeErr != nil {
			t.Fatal(writeErr)
		}
		if after := f.ids(); fmt.Sprint(after) != fmt.Sprint(running) {
			t.Fatalf("%s: running %v, before %v", name, after, running)
		}
		return err
	}
	for n := 0; n < len(good); n += 13 {
		if try(fmt.Sprintf("the first %d bytes", n), good[:n]) == nil {
			t.Errorf("%d of %d bytes are taken for a checkpoint", n, len(good))
		}
	}
	r := rand.New(rand.NewPCG(1, 1)) // any random numbers will do
	for range 150 {
		bad, at, bit := slices.Clone(good), r.IntN(len(good)), r.IntN(8)
		bad[at] ^= 1 << bit
		_ = try(fmt.Sprintf("bit %d of byte %d (%s)", bit, at, good[max(0, at-20):min(len(good), at+20)]), bad)
	}
}

const claimant = `apiVersion: v1
kind: Pod
metadata: {name: NAME}
spec:
  terminationGracePeriodSeconds: 1
  volumes: [{name: v, persistentVolumeClaim: {claimName: CLAIM}}]
  containers: [{name: a, image: 'i:1', volumeMounts: [{name: v, mountPath: /v}]}]
`

// TestClaimsStayWithUnreadableCheckpoints checks that a deletion with claims keeps a claim that another pod uses, or
// may use because its checkpoint is unreadable, and reports why.
func TestClaimsStayWithUnreadableCheckpoints(t *testing.T) {
	for name, c := range map[string]struct {
		other, checkpoint string
		wantMessage       string
	}{
		"another pod has it":        {other: "data", wantMessage: "pod default/other uses it"},
		"one that is damaged":       {other: "data", checkpoint: "{", wantMessage: "it is damaged"},
		"one of a newer podctl":     {other: "data", checkpoint: `{"version":2}`, wantMessage: "it was written by a newer podctl"},
		"of another's own manifest": {other: "else", checkpoint: "{", wantMessage: "it is damaged"},
		"no pod has it":             {other: "else"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFaultLab(t, faultShape{})
			d := f.load(strings.NewReplacer("NAME", "web", "CLAIM", "data").Replace(claimant))
			other := f.load(strings.NewReplacer("NAME", "other", "CLAIM", c.other).Replace(claimant))
			for _, one := range []*podspec.Desired{d, other} {
				if _, err := f.pass(one); err != nil {
					t.Fatal(err)
				}
			}
			checkpoint := f.layout.Pod(other.Pod.UID).Checkpoint().Path()
			if c.checkpoint != "" {
				if err := os.WriteFile(checkpoint, []byte(c.checkpoint), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			warnings := f.deleteWithClaims(d)
			dir := ok(f.layout.Pod(d.Pod.UID).Claims().Dir(state.Claim{Namespace: "default", Name: "data"}))
			if _, err := os.Stat(dir); (err == nil) != (c.wantMessage != "") {
				t.Errorf("the claim: %v", err)
			}
			if !strings.Contains(warnings, c.wantMessage) || (c.wantMessage == "") != (warnings == "") {
				t.Errorf("warned %q, want %q", warnings, c.wantMessage)
			}
			if c.checkpoint != "" && (!strings.Contains(warnings, checkpoint) ||
				!strings.Contains(warnings, dir) || strings.Contains(warnings, "not harmed")) {
				t.Errorf("%q names neither checkpoint nor claim, or gives bad advice", warnings)
			}
		})
	}
}

// deleteWithClaims deletes a pod and its claims, and returns the warnings.
func (f *faultLab) deleteWithClaims(d *podspec.Desired) string {
	f.t.Helper()
	var warnings strings.Builder
	outcome, err := f.engine.Pods.Delete(f.t.Context(), model.RefOf(d.Pod), executor.Options{
		Options: plan.Options{RemoveVolumes: true},
		Report: func(ev executor.Event) {
			if ev.Kind == executor.Warning {
				warnings.WriteString(ev.Detail)
			}
		},
	})
	if err != nil || outcome.Err() != nil {
		f.t.Fatal(err, outcome.Err())
	}
	return warnings.String()
}
