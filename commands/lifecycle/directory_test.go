package lifecycle_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/podctl/podctl/commands/exit"
)

// TestDirectories checks that a directory is read as in kubectl, recursively with -R. Workloads in it can be planned,
// applied, compared and deleted, and -l selects among them.
func TestDirectories(t *testing.T) {
	l := newLab(t)
	write := func(name, text string) {
		path := l.Path(filepath.Join("site", name))
		err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600))
		if err != nil {
			t.Fatal(err)
		}
	}
	write("web.yaml", deployment(1, "i:1", ""))
	write("more/deep/db.yml", strings.ReplaceAll(deployment(1, "i:1", ""), "web", "db"))
	write("more/README.md", "not: [yaml")
	write("more/.hidden/x.yaml", "not: [yaml")
	dir := l.Path("site")
	if stdout, _ := l.Must("plan", "-f", dir); strings.Contains(stdout, "default/db") ||
		!strings.Contains(stdout, "Deployment default/web · would be created") {
		t.Errorf("plan: %s", stdout)
	}
	for _, args := range [][]string{{"plan"}, {"validate"}, {"apply", "--dry-run"}} {
		if stdout, _ := l.Must(append(args, "-R", "-f", dir)...); !strings.Contains(stdout, "default/db") ||
			!strings.Contains(stdout, "default/web") {
			t.Errorf("%v: %s", args, stdout)
		}
	}
	if code, _, _ := l.Call("diff", "-R", "-f", dir); code != 1 {
		t.Errorf("diff: %d", code)
	}
	l.Must("apply", "-R", "-f", dir, "-l", "app=db")
	if stdout, _ := l.Must("get", "-o", "name"); stdout != "pod/db-0\n" {
		t.Errorf("after apply -l: %s", stdout)
	}
	l.Must("apply", "-R", "--wait", "-f", dir)
	l.Must("diff", "-R", "-f", dir)
	l.Must("delete", "-R", "-f", dir, "-l", "app=db")
	if stdout, _ := l.Must("get", "-o", "name"); stdout != "pod/web-0\n" {
		t.Errorf("after delete -l: %s", stdout)
	}
	l.Must("delete", "-R", "-f", dir)
	write("more/a.yaml", "kind: Pod\n")
	write("more/b.yaml", "apiVersion: v1\nkind: Pod\nmetadata: {name: x}\nspec: {containrs: []}\n")
	code, _, stderr := l.Call("apply", "-R", "-f", dir)
	for _, want := range []string{"more/a.yaml:1:1: ", "more/b.yaml:4:8: spec.containrs"} {
		if code != exit.Refused || !strings.Contains(stderr, want) {
			t.Errorf("%d, want %q: %s", code, want, stderr)
		}
	}
	if stdout, _ := l.Must("get", "-o", "name"); stdout != "" {
		t.Errorf("apply of a part: %s", stdout)
	}
}
