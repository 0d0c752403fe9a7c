package runtime

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/podctl/podctl/runtime/plan"
	"github.com/podctl/podctl/runtime/volume"
)

// TestUnusedClaims: a claim goes once no pod has it, and stays with all that is in it as
// long as one has it or may have it, also one that came at the last moment.
func TestUnusedClaims(t *testing.T) {
	f := newFaultLab(t, faultShape{})
	d := f.load(strings.NewReplacer("NAME", "web", "CLAIM", "data").Replace(claimant))
	ref, file := plan.RefOf(d.Pod), filepath.Join(f.layout.Pod(d.Pod.UID).ClaimDir("default", "data"), "file")
	apply := func() {
		t.Helper()
		if outcome, err := f.engine.Apply(t.Context(), d, Options{}); err != nil || outcome.Err() != nil {
			t.Fatal(err, outcome)
		}
	}
	unused := func() []Garbage {
		t.Helper()
		found, err := f.engine.UnusedClaims(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	apply()
	if err := os.WriteFile(file, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if found := unused(); len(found) > 0 {
		t.Errorf("unused is %v, which a pod has", found)
	}
	journal := f.layout.Pod(d.Pod.UID).JournalFile()
	if err := os.Rename(journal, journal+".aside"); err != nil {
		t.Fatal(err)
	}
	if found, err := f.engine.UnusedClaims(t.Context()); err == nil || !strings.Contains(err.Error(), "pod default/web, of which there is no journal") {
		t.Errorf("unused without a journal: %v %v", found, err)
	}
	if err := os.Rename(journal+".aside", journal); err != nil {
		t.Fatal(err)
	}
	if _, err := f.engine.Delete(t.Context(), ref, Options{}); err != nil {
		t.Fatal(err)
	}
	found := unused()
	if len(found) != 1 || found[0].Claim != "data" || found[0].Size == 0 {
		t.Fatalf("unused is %v, want the claim", found)
	}
	if err := volume.RemoveClaim(found[0].Path, func() error { return ErrNeeded }); !errors.Is(err, ErrNeeded) {
		t.Error(err)
	}
	apply()
	if err := f.engine.RemoveGarbage(t.Context(), found[0]); !errors.Is(err, ErrNeeded) {
		t.Errorf("a claim that a pod has come to use: %v", err)
	}
	if _, err := os.Stat(file); err != nil {
		t.Error(err)
	}
	if _, err := f.engine.Delete(t.Context(), ref, Options{}); err != nil {
		t.Fatal(err)
	}
	if err := f.engine.RemoveGarbage(t.Context(), found[0]); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Dir(file)); err == nil {
		t.Error("the claim is still there")
	}
}
