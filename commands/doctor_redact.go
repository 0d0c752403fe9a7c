package commands

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"
	"time"

	"github.com/podctl/podctl/podspec/redaction"
)

// redactJSON takes values of Secrets out of the texts of a JSON document. Its keys, numbers and
// form stay, and so do names, times and states: it can be read whatever the values are.
func redactJSON(r *redaction.Redactor, document []byte) []byte {
	if r == nil {
		return document
	}
	d := &jsonRedaction{redactor: r, inside: []string{""}}
	// A string, with the colon when it is a key, or a bracket.
	token := regexp.MustCompile(`"(?:[^"\\]|\\.)*"(?:\s*:)?|[{}\[\]]`)
	return token.ReplaceAllFunc(document, d.token)
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
