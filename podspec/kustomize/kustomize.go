package kustomize

import (
	"fmt"
	"strings"

	"github.com/podctl/podctl/podspec/document"
	"github.com/podctl/podctl/podspec/input"
)

// MissingError says that this podctl was built without the library.
type MissingError struct{ Dir string }

// Error says what to do.
func (e *MissingError) Error() string {
	return fmt.Sprintf("building the kustomization %s: this podctl is built without kustomize (see docs/install.md); write: kustomize build %[1]s | podctl apply -f -", input.OneLine(e.Dir))
}

// RefusedError says that a kustomization is not built, with all the reasons at once.
type RefusedError struct{ Problems []document.Problem }

// Error lists every problem on a line of its own.
func (e *RefusedError) Error() string {
	lines := make([]string, 0, len(e.Problems)+1)
	lines = append(lines, fmt.Sprintf("the kustomization is refused: %s", document.Counted(len(e.Problems), "problem")))
	for _, p := range e.Problems {
		lines = append(lines, "  "+p.String())
	}
	return strings.Join(lines, "\n")
}
