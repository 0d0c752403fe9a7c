package node

import (
	"bytes"
	"strings"
	"testing"

	"github.com/podctl/podctl/commands/commandstest"
	"github.com/podctl/podctl/commands/terminal"
	"github.com/podctl/podctl/runtime/node"
)

// TestNodeWithoutASandboxImage checks that node up reports a missing sandbox image, without which no pod starts.
func TestNodeWithoutASandboxImage(t *testing.T) {
	for want, s := range map[string]*node.Status{
		"": {Running: true, SandboxImage: node.DefaultSandboxImage},
		"load it (podctl node up --load pause.tar": {
			Running: true, SandboxImage: node.DefaultSandboxImage, SandboxImageMissing: true,
		},
		"podctl image pull r.io/pause:3": {
			Running: true, SandboxImage: "r.io/pause:3", SandboxImageMissing: true,
		},
	} {
		var out, errs bytes.Buffer
		if err := show(terminal.NewIO(commandstest.Env("", &out, &errs, nil)), s, "text"); err != nil {
			t.Fatal(err)
		}
		if (errs.Len() > 0) != (want != "") || !strings.Contains(errs.String(), want) ||
			!strings.Contains(out.String(), "node is up") {
			t.Errorf("%q, want %q", errs.String(), want)
		}
	}
}
