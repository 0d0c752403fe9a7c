package commands

import (
	"encoding/json"
	"regexp"
	"sync"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/podspec/redaction"
	"github.com/podctl/podctl/runtime"
)

// newRedactor returns a redactor of the Secrets of pods, those before a change too.
func newRedactor(applied []runtime.AppliedPod, others ...*podspec.Desired) *redaction.Redactor {
	var values [][]byte
	for _, p := range applied {
		if p.Desired != nil {
			values = append(values, p.Desired.Objects.SecretValues()...)
		}
		if p.Journal != nil {
			values = append(values, p.Journal.SecretValues()...)
		}
	}
	for _, d := range others {
		values = append(values, d.Objects.SecretValues()...)
	}
	return redaction.New(values...)
}

// jsonString is a string of a JSON document, with the colon when it is a key.
var jsonString = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`"(?:[^"\\]|\\.)*"(?:\s*:)?`) }) //nolint:gochecknoglobals // compiled once, when it is needed

// redactJSON takes values of Secrets out of the texts of a JSON document. Its keys,
// numbers and form stay, so that it can be read whatever the values are.
func redactJSON(r *redaction.Redactor, document []byte) []byte {
	return jsonString().ReplaceAllFunc(document, func(found []byte) []byte {
		var text string
		if json.Unmarshal(found, &text) != nil { // A key, with its colon.
			return found
		}
		clean := r.Text(text)
		if clean == text {
			return found
		}
		quoted, err := json.Marshal(clean)
		if err != nil {
			return []byte(`"` + redaction.Hidden + `"`)
		}
		return quoted
	})
}

// errorText is what an error says, without the values of Secrets. Where errors arise that a pass
// or a look at a pod does not redact, nobody knows the pod: the journals are read for it, so it
// is for what goes wrong alone.
func (g *globals) errorText(err error) string { return g.redacted().Text(err.Error()) }

// redacted is the redactor of all Secrets that podctl knows here.
func (g *globals) redacted() *redaction.Redactor {
	g.notedLock.Lock()
	defer g.notedLock.Unlock()
	if g.redactor == nil && g.stateDir != "" {
		applied, _, err := runtime.Applied(g.layout())
		if err != nil {
			applied = nil // What cannot be read is told by whoever needs it.
		}
		g.redactor = newRedactor(applied, g.known...)
	}
	return g.redactor
}
