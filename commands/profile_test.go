package commands

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestProfiles checks that each hidden flag writes its file, whether the command succeeds or fails. Only the owner can
// read it.
func TestProfiles(t *testing.T) {
	for _, args := range [][]string{{"version", "--client"}, {"validate", "/nowhere.yaml"}} {
		dir := t.TempDir()
		for _, flag := range []string{"cpuprofile", "trace", "spans"} {
			args = append(args, "--"+flag, filepath.Join(dir, flag))
		}
		t.Setenv("TRACEPARENT", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
		var out, errs strings.Builder
		env := &Env{In: strings.NewReader(""), Out: &out, Err: &errs, Now: System().Now, Getenv: os.Getenv}
		Main(t.Context(), env, args)
		for _, flag := range []string{"cpuprofile", "trace", "spans"} {
			info, err := os.Stat(filepath.Join(dir, flag))
			if err != nil || info.Size() == 0 || info.Mode().Perm() != 0o600 {
				t.Errorf("%v: --%s wrote %v, %v\n%s", args, flag, info, err, errs.String())
			}
		}
		text, err := os.ReadFile(filepath.Join(dir, "spans"))
		if err != nil || !strings.Contains(string(text), "0af7651916cd43dd8448eb211c80319c") ||
			!strings.Contains(string(text), "podctl "+args[0]) {
			t.Errorf("the spans are not children of the caller's span: %s %v", text, err)
		}
	}
}
