package agent

import (
	"os"
	"strings"
	"testing"
)

// TestMistypedCommands: a word that is neither a command nor an existing file does not start an agent. A path that may
// be created later does.
func TestMistypedCommands(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.Mkdir("pods", 0o755); err != nil {
		t.Fatal(err)
	}
	for _, good := range [][]string{nil, {"pods"}, {"./later"}, {"/nowhere/pods"}, {"https://example.com/pods.yaml"}} {
		if err := checkWords(good); err != nil {
			t.Errorf("%v: %v", good, err)
		}
	}
	if err := checkWords([]string{"pods", "statsu"}); err == nil || !strings.Contains(err.Error(), "./statsu") {
		t.Errorf("statsu: %v", err)
	}
}
