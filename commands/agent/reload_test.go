package agent

import (
	"errors"
	"strings"
	"testing"
)

// TestCompareSettings checks which settings have changed, and when the error of the new process prevents a restart:
// when the settings are invalid, or when they have changed and a start needs more than valid settings.
func TestCompareSettings(t *testing.T) {
	now := settings{"parallel": "1", "kubeconfig": "k"}
	fault := errors.New("no such file")
	for _, c := range []struct {
		out     string
		fault   error
		changed string
		err     string
	}{
		{`{"parallel":"1","kubeconfig":"k"}`, nil, "", ""},
		{`{"parallel":"2","kubeconfig":"l"}`, nil, "kubeconfig parallel", ""},
		{`{"parallel":"1","kubeconfig":"k"}`, fault, "", ""},
		{`{"parallel":"1","kubeconfig":"l"}`, fault, "", "no such file"},
		{"", fault, "", "no such file"},
		{"", nil, "", "does not print its configuration"},
	} {
		changed, err := now.compare([]byte(c.out), c.fault)
		if strings.Join(changed, " ") != c.changed || (err != nil) != (c.err != "") ||
			err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s, %v: %q, %v", c.out, c.fault, changed, err)
		}
	}
}
