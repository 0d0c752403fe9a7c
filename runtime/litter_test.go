package runtime

import (
	"os"
	"path/filepath"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/podctl/podctl/runtime/gc"
)

// TestEventsThatCannotBeRead checks that events of deleted pods are removed as garbage whatever their content is, and
// that those of an existing pod stay.
func TestEventsThatCannotBeRead(t *testing.T) {
	f := newFaultLab(t, faultShape{before: tripPod("web")})
	web := f.load(tripPod("web")).Pod
	there := f.layout.Pod(web.UID)
	gone := map[string]string{
		"damaged":  "garbage",
		"newer":    `{"version":2,"pod":{"name":"x"}}`,
		"misnamed": `{"version":1,"pod":{"uid":"` + string(web.UID) + `"}}`,
	}
	for uid, text := range gone {
		if err := os.WriteFile(f.layout.Pod(types.UID(uid)).History().Path(), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(there.History().Path(), []byte("garbage"), 0o600); err != nil {
		t.Fatal(err)
	}
	garbage, err := f.engine.Garbage.List(t.Context())
	if err != nil || len(garbage) != len(gone) {
		t.Errorf("%+v %v", garbage, err)
	}
	for _, g := range garbage {
		if g.Kind != gc.GarbageEvents || gone[string(g.Pod.UID)] == "" || g.Path != f.layout.Pod(g.Pod.UID).History().Path() {
			t.Errorf("%+v", g)
		}
		if err = f.engine.Garbage.Remove(t.Context(), g); err != nil {
			t.Error(err)
		}
	}
	left, err := filepath.Glob(filepath.Join(filepath.Dir(there.History().Path()), "*"))
	if err != nil || len(left) != 1 || left[0] != there.History().Path() {
		t.Errorf("leftovers: %v %v", left, err)
	}
}
