package inspect_test

import (
	"os"
	"strings"
	"testing"

	"github.com/podctl/podctl/commands/exit"
)

// labelled returns a lab with two applied pods, one of them with labels and a port.
func labelled(t *testing.T) *lab {
	t.Helper()
	l := newLab(t)
	path := l.Write("web", "  securityContext: {runAsUser: 12345678}\n"+
		"  containers: [{name: a, image: 'i:1', ports: [{containerPort: 80}, {containerPort: 443}]}]\n")
	text, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(path, []byte(
			strings.Replace(string(text), "{name: web}", "{name: web, labels: {app: w, x.io/tier: front}}", 1)), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	l.Must("apply", path, l.Write("plain", "  containers: [{name: a, image: 'i:1'}]\n"))
	return l
}

// TestUsersFormats: custom columns and templates print the same as in kubectl.
func TestUsersFormats(t *testing.T) {
	l := labelled(t)
	for name, text := range map[string]string{
		"columns":  "NAME  PORTS\n.metadata.name {.spec.containers[*].ports[*].containerPort}\n",
		"template": "{.kind",
		"bad":      "NAME\n",
	} {
		if err := os.WriteFile(l.Path(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for output, want := range map[string]string{
		"custom-columns=NAME:.metadata.name,USER:.spec.securityContext.runAsUser": "NAME    USER\nplain   <none>\nweb     12345678\n",
		"custom-columns-file=" + l.Path("columns"): "NAME    PORTS\n" +
			"plain   <none>\nweb     80,443\n",
		"jsonpath={.items[1].spec.securityContext.runAsUser}": "12345678",
		"jsonpath-file=" + l.Path("template"):                 "",
	} {
		code, stdout, stderr := l.Call("get", "-o", output)
		if want == "" {
			if code != exit.Error || !strings.Contains(stderr, "-o jsonpath") {
				t.Errorf("%s: exit code %d\n%s", output, code, stderr)
			}
			continue
		}
		if code != exit.OK || stdout != want {
			t.Errorf("%s: exit code %d\n%s%s", output, code, stdout, stderr)
		}
	}
	if stdout, _ := l.Must("get", "web", "--no-headers", "-o", "custom-columns=A:metadata.name"); stdout != "web\n" {
		t.Error(stdout)
	}
	for _, output := range []string{
		"custom-columns=NAME", "custom-columns=:", "custom-columns-file=" + l.Path("bad"), "jsonpath={",
		"go-template={{.kind}}", "jsonpath-file=/absent", "xml",
	} {
		if code, stdout, stderr := l.Call("get", "-o", output); code != exit.Error || stdout != "" || stderr == "" {
			t.Errorf("%s: exit code %d\n%s%s", output, code, stdout, stderr)
		}
	}
}

// TestLabelColumns: label columns appear in every table, and are refused in other formats.
func TestLabelColumns(t *testing.T) {
	l := labelled(t)
	for args, want := range map[string]string{
		"-L app -L x.io/tier": "APP      TIER\nplain <none>   <none>\nweb w        front\n",
		"--show-labels":       "LABELS\nplain <none>\nweb app=w,x.io/tier=front\n",
		"-o wide -L app":      "APP\nplain <none>\nweb w\n",
		"--containers -L app": "APP\nplain <none>\nweb w\n",
	} {
		stdout, _ := l.Must(append([]string{"get"}, strings.Fields(args)...)...)
		var got strings.Builder
		at := strings.Index(stdout, strings.SplitN(want, "\n", 2)[0])
		if at < 0 {
			t.Errorf("%s:\n%s", args, stdout)
			continue
		}
		for i, line := range strings.Split(strings.TrimSuffix(stdout, "\n"), "\n") {
			if i > 0 {
				got.WriteString(strings.Fields(line)[0] + " ")
			}
			got.WriteString(line[at:] + "\n")
		}
		if got.String() != want {
			t.Errorf("%s:\n%s\n%s", args, stdout, got.String())
		}
	}
	for _, output := range []string{"json", "name", "custom-columns=A:.kind"} {
		if code, _, stderr := l.Call("get", "--show-labels", "-o", output); code != exit.Error ||
			!strings.Contains(stderr, "need a table") {
			t.Errorf("%s: exit code %d\n%s", output, code, stderr)
		}
	}
}
