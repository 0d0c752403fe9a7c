package commands

import (
	"encoding/base64"
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"github.com/podctl/podctl/runtime"
)

// hidden stands where the value of a Secret was.
const hidden = "(secret)"

// The lengths, in bytes, from which a value and a line of one are looked for.
// Shorter ones are no secrets and would be found everywhere.
const (
	shortestSecret = 4
	shortestLine   = 8
)

// scrubber takes values of Secrets out of texts. What podctl writes has none, but
// programs and runtimes may have repeated them in a message.
type scrubber struct{ values *strings.Replacer }

func newScrubber(applied []runtime.AppliedPod) scrubber {
	var forms []string
	for _, value := range secretsOf(applied) {
		if len(value) >= shortestSecret {
			forms = append(forms, value, escaped(value), base64.StdEncoding.EncodeToString([]byte(value)))
		}
		for line := range strings.Lines(value) {
			if line = strings.TrimSpace(line); len(line) >= shortestLine {
				forms = append(forms, line)
			}
		}
	}
	// The longest first: a value may be the beginning of another.
	slices.SortFunc(forms, func(a, b string) int { return len(b) - len(a) })
	var pairs []string
	for _, form := range forms {
		pairs = append(pairs, form, hidden)
	}
	return scrubber{values: strings.NewReplacer(pairs...)}
}

// escaped is a value as a document inside of a text has it.
func escaped(value string) string {
	quoted, err := json.Marshal(value)
	if err != nil {
		return value
	}
	return strings.Trim(string(quoted), `"`)
}

// text takes them out of a text.
func (s scrubber) text(text string) string { return s.values.Replace(text) }

// json takes them out of the texts of a JSON document. Its keys, numbers and form
// stay, so that it can be read whatever the values are.
func (s scrubber) json(document []byte) []byte {
	return regexp.MustCompile(`"(?:[^"\\]|\\.)*"(?:\s*:)?`).ReplaceAllFunc(document, func(found []byte) []byte {
		var text string
		if json.Unmarshal(found, &text) != nil { // A key, with its colon.
			return found
		}
		clean := s.text(text)
		if clean == text {
			return found
		}
		quoted, err := json.Marshal(clean)
		if err != nil {
			return []byte(`"` + hidden + `"`)
		}
		return quoted
	})
}
