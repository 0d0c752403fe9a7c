package observe

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/state/statedir"
)

// TestNodeIdentity checks that the identity of a node is stored, written only if it has changed, and that a damaged file
// is an error with its path.
func TestNodeIdentity(t *testing.T) {
	f := identityFile{statedir.Dir{Path: t.TempDir()}}
	if got, err := f.read(); got != nil || err != nil {
		t.Errorf("without a file: %v, %v", got, err)
	}
	want := &model.NodeIdentity{
		Name: "n1", IPs: []string{"192.0.2.1"}, Allocatable: v1.ResourceList{v1.ResourceCPU: resource.MustParse("2")},
	}
	if err := f.write(want); err != nil {
		t.Fatal(err)
	}
	if got, err := f.read(); err != nil || !cmp.Equal(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
	before, err := os.Stat(f.path())
	if err != nil {
		t.Fatal(err)
	}
	for name, changed := range map[string]bool{"n1": false, "n2": true} {
		want.Name = name
		if err = f.write(want); err != nil {
			t.Fatal(err)
		}
		now, statErr := os.Stat(f.path())
		if statErr != nil || os.SameFile(before, now) == changed {
			t.Errorf("%s: %v", name, statErr)
		}
		want.Name = "n1"
		if err = f.write(want); err != nil {
			t.Fatal(err)
		}
		if before, err = os.Stat(f.path()); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(f.path(), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := f.read(); err == nil || !strings.Contains(err.Error(), f.path()) {
		t.Error(err)
	}
}
