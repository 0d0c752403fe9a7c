package commands

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/podspec/redaction"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/state"
)

// newRedactor returns a redactor of the Secrets of pods, those before a change too. The names of
// the pods stay: nobody could tell otherwise which pod an error is about.
func newRedactor(applied []state.AppliedPod, others ...*podspec.Desired) *redaction.Redactor {
	var values [][]byte
	var names []string
	for _, p := range applied {
		if p.Desired != nil {
			others = append(others, p.Desired)
		}
		if p.Checkpoint != nil {
			values = append(values, p.Checkpoint.SecretValues()...)
		}
	}
	for _, d := range others {
		values = append(values, d.Objects.SecretValues()...)
		if d.Pod != nil {
			names = append(names, model.RefOf(d.Pod).String())
		}
	}
	return redaction.New(values...).Keeping(names...)
}

// jsonToken is a string of a JSON document, with the colon when it is a key, or a bracket.
var jsonToken = sync.OnceValue(func() *regexp.Regexp { //nolint:gochecknoglobals // compiled once, when it is needed
	return regexp.MustCompile(`"(?:[^"\\]|\\.)*"(?:\s*:)?|[{}\[\]]`)
})

// redactJSON takes values of Secrets out of the texts of a JSON document. Its keys, numbers and
// form stay, and so do names, times and states: it can be read whatever the values are.
func redactJSON(r *redaction.Redactor, document []byte) []byte {
	if r == nil {
		return document
	}
	d := &jsonRedaction{redactor: r, inside: []string{""}}
	return jsonToken().ReplaceAllFunc(document, d.token)
}

// jsonRedaction is on its way through a JSON document.
type jsonRedaction struct {
	redactor *redaction.Redactor
	// key is the last key, inside those whose objects and lists it is in.
	key    string
	inside []string
}

func (d *jsonRedaction) token(found []byte) []byte {
	switch found[0] {
	case '{', '[':
		d.inside = append(d.inside, d.key)
		return found
	case '}', ']':
		if last := len(d.inside) - 1; last > 0 {
			d.key, d.inside = d.inside[last], d.inside[:last]
		}
		return found
	}
	if quoted, isKey := bytes.CutSuffix(found, []byte(":")); isKey {
		d.key = ""
		_ = json.Unmarshal(bytes.TrimSpace(quoted), &d.key) // One that is no text is none of podctl's.
		return found
	}
	return d.text(found)
}

// text redacts a string of the document.
func (d *jsonRedaction) text(found []byte) []byte {
	var text string
	if json.Unmarshal(found, &text) != nil {
		return []byte(`"` + redaction.Hidden + `"`)
	}
	if d.isOwn(text) {
		return found
	}
	clean := d.redactor.Text(text)
	if clean == text {
		return found
	}
	quoted, err := json.Marshal(clean)
	if err != nil {
		return []byte(`"` + redaction.Hidden + `"`)
	}
	return quoted
}

// isOwn reports whether a text is podctl's or Kubernetes' own by its field and by its form: a
// name, a time, a state. Below maps that others fill, nothing is.
func (d *jsonRedaction) isOwn(text string) bool {
	for _, outer := range d.inside {
		switch outer {
		case "annotations", "labels", "data", "stringData", "binaryData", "info", "env", "envs", "args", "command":
			return false
		}
	}
	if _, err := time.Parse(time.RFC3339Nano, text); err == nil {
		return true
	}
	switch d.key {
	case "kind", "type", "state", "reason", "phase", "status", "result", "verdict":
		return strings.Trim(text, asciiLetters+"_") == ""
	case "apiVersion", "name", "namespace", "pod", "container", "uid", "id", "containerID", "containerId", "podSandboxId", "sandboxID", "podctl":
		return strings.Trim(text, "abcdefghijklmnopqrstuvwxyz0123456789-./:") == ""
	}
	return false
}

const asciiLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

// errorText is what an error says, without the values of Secrets. Where errors arise that a pass
// or a look at a pod does not redact, nobody knows the pod: the journals are read for it, so it
// is for what goes wrong alone.
func (g *globals) errorText(err error) string { return g.redacted().Text(err.Error()) }

// redacted is the redactor of all Secrets that podctl knows here.
func (g *globals) redacted() *redaction.Redactor {
	g.notedLock.Lock()
	defer g.notedLock.Unlock()
	if g.redactor == nil && g.stateDir != "" {
		applied, _, err := state.Applied(g.layout())
		if err != nil {
			applied = nil // What cannot be read is told by whoever needs it.
		}
		g.redactor = newRedactor(applied, g.known...)
	}
	return g.redactor
}
