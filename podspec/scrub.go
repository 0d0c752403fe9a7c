package podspec

import (
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"
)

// hidden stands where the value of a Secret was.
const hidden = "(secret)"

// The lengths, in bytes, from which a value and a line of one are looked for.
// Shorter ones are no secrets and would be found everywhere.
const (
	shortestSecret = 4
	shortestLine   = 8
)

// Scrubber takes values of Secrets out of texts. What podctl writes has none, but
// programs, probes and runtimes may have repeated them in a message.
type Scrubber struct{ values *strings.Replacer }

// NewScrubber knows the Secrets of pods, in the forms in which texts have them.
func NewScrubber(pods ...*Desired) Scrubber {
	var forms []string
	for _, d := range pods {
		if d == nil {
			continue
		}
		for _, s := range d.Objects.Secrets {
			for _, value := range s.Data {
				forms = append(forms, secretForms(string(value))...)
			}
			for _, value := range s.StringData {
				forms = append(forms, secretForms(value)...)
			}
		}
	}
	// The longest first: a value may be the beginning of another.
	slices.SortFunc(forms, func(a, b string) int { return len(b) - len(a) })
	var pairs []string
	for _, form := range forms {
		pairs = append(pairs, form, hidden)
	}
	return Scrubber{values: strings.NewReplacer(pairs...)}
}

func secretForms(value string) []string {
	var forms []string
	for _, whole := range []string{value, strings.TrimSpace(value)} {
		if len(whole) >= shortestSecret {
			forms = append(forms, whole, escaped(whole), base64.StdEncoding.EncodeToString([]byte(whole)))
		}
	}
	for line := range strings.Lines(value) {
		if line = strings.TrimSpace(line); len(line) >= shortestLine {
			forms = append(forms, line)
		}
	}
	return forms
}

// escaped is a value as a document inside of a text has it.
func escaped(value string) string {
	quoted, err := json.Marshal(value)
	if err != nil {
		return value
	}
	return strings.Trim(string(quoted), `"`)
}

// Text takes the values out of a text; the zero Scrubber takes out nothing.
func (s Scrubber) Text(text string) string {
	if s.values == nil {
		return text
	}
	return s.values.Replace(text)
}
