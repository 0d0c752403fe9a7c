package image_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/podctl/podctl/commands"
	"github.com/podctl/podctl/commands/commandstest"
	"github.com/podctl/podctl/commands/exit"
	"github.com/podctl/podctl/runtime/runtimetest"
)

func TestImageUsage(t *testing.T) {
	for name, args := range map[string][]string{
		"pull without an image":    {"image", "pull"},
		"rm without an image":      {"image", "rm"},
		"load without an archive":  {"image", "load"},
		"save without an image":    {"image", "save"},
		"inspect without an image": {"image", "inspect"},
		"tag without a name":       {"image", "tag", "i:1"},
		"an unknown command":       {"image", "nonsense"},
		"--pin of a pod":           {"plan", "--pin", "web"},
		"--pin without manifest":   {"plan", "--pin"},
	} {
		if code, _, stderr := commandstest.Call(t, commands.Main, "", args...); code != exit.Error ||
			!strings.Contains(stderr, "--help") {
			t.Errorf("%s: exit code %d\n%s", name, code, stderr)
		}
	}
}

func TestMain(m *testing.M) { runtimetest.Main(m) }

// TestInspect checks that inspect shows the names and users of an image, and that tag fails on a runtime without an API
// for it.
func TestInspect(t *testing.T) {
	l := commandstest.NewLab(t, commands.Main)
	l.Must("apply", l.Write("web", "  containers: [{name: a, image: 'i:1'}]\n"))
	stdout, _ := l.Must("image", "inspect", "i:1")
	var doc struct {
		Kind, ID string
		Tags     []string
		UsedBy   []struct{ Container string }
	}
	if err := json.Unmarshal([]byte(stdout), &doc); err != nil || doc.Kind != "Image" || doc.ID == "" ||
		len(doc.Tags) == 0 || len(doc.UsedBy) != 1 {
		t.Errorf("%v\n%s", err, stdout)
	}
	stdout, _ = l.Must("image", "inspect", "-o", "yaml", "i:1", "i:2")
	if !strings.Contains(stdout, "kind: ImageList\n") || strings.Count(stdout, "kind: Image\n") != 2 {
		t.Errorf("%s", stdout)
	}
	for want, args := range map[string][]string{
		"no image absent":                     {"inspect", "absent"},
		"no image gone":                       {"tag", "gone", "x:1"},
		"does not speak containerd's own API": {"tag", "i:1", "x:1"},
		"is not an image name":                {"tag", "i:1", "X:1"},
		"has a digest":                        {"tag", "i:1", "x@sha256:" + strings.Repeat("a", 64)},
	} {
		if code, _, stderr := l.Call(append([]string{"image"}, args...)...); code != exit.Error ||
			!strings.Contains(stderr, want) {
			t.Errorf("%v: exit code %d\n%s", args, code, stderr)
		}
	}
}
