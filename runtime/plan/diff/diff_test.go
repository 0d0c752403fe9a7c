package diff

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/podctl/podctl/podspec/digest"
)

func TestChangesNameTheFields(t *testing.T) {
	before := map[string]any{
		"image": "a:1", "args": []any{"x"},
		"env": []any{map[string]any{"name": "A", "value": "1"}, map[string]any{"name": "S", "value": digest.SecretPrefix + "k:aa"}},
	}
	after := map[string]any{
		"image": "a:2", "args": []any{"x", "y"},
		"env": []any{map[string]any{"name": "B", "value": "2"}, map[string]any{"name": "S", "value": digest.SecretPrefix + "k:bb"}},
	}
	var got []string
	for _, c := range Trees(before, after).Changes {
		got = append(got, c.String())
	}
	want := []string{`args: ["x"] -> ["x","y"]`, "env[A]: - 1", "env[B]: + 2", "env[S].value: (secret changed)", "image: a:1 -> a:2"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
