package inspect_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/podctl/podctl/commands/exit"
)

// TestOrderOfPods: pods are sorted by namespace and name, including pods without a checkpoint.
func TestOrderOfPods(t *testing.T) {
	l := newLab(t)
	for _, name := range []string{"b", "a", "c"} {
		l.Must("apply", l.Write(name, "  containers: [{name: x, image: 'i:1'}]\n"))
	}
	other := l.Write("z", "  containers: [{name: x, image: 'i:1'}]\n")
	text, err := os.ReadFile(other)
	if err == nil {
		err = os.WriteFile(other, []byte(strings.Replace(string(text), "{name: z}", "{name: z, namespace: alone}", 1)),
			0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	l.Must("apply", other)
	lost, err := filepath.Glob(l.Path("state/pods/*/checkpoint.json"))
	if err != nil || len(lost) != 4 {
		t.Fatal(lost, err)
	}
	for range 2 {
		if stdout, _ := l.Must("get", "-A", "-o", "name"); stdout != "pod/z\npod/a\npod/b\npod/c\n" {
			t.Errorf("%q", stdout)
		}
		if err := os.Remove(lost[0]); err != nil {
			t.Fatal(err)
		}
		lost = lost[1:]
	}
}

// TestSortByAnUnknownField: --sort-by refuses a field that no pod has, and accepts one that only some pods have.
func TestSortByAnUnknownField(t *testing.T) {
	l := newLab(t)
	if code, _, stderr := l.Call("get", "--sort-by", ".metadata.nme"); code != exit.OK {
		t.Errorf("without pods: exit code %d\n%s", code, stderr)
	}
	l.Must("apply", l.Write("a", "  containers: [{name: x, image: 'i:1'}]\n"),
		l.Write("b", "  hostname: h\n  containers: [{name: x, image: 'i:1'}]\n"))
	for _, path := range []string{".metadata.nme", "{.metadata.nme}", "metadata.nme"} {
		code, stdout, stderr := l.Call("get", "--sort-by", path)
		if code != exit.Error || stdout != "" || !strings.Contains(stderr, "no pod has a field "+path) {
			t.Errorf("%s: exit code %d\n%s%s", path, code, stdout, stderr)
		}
	}
	if stdout, _ := l.Must("get", "-o", "name", "--sort-by", ".spec.hostname"); stdout != "pod/a\npod/b\n" {
		t.Errorf("%q", stdout)
	}
}
