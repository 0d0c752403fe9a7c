package commands

import (
	"encoding/json"
	"regexp"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime"
)

func newScrubber(applied []runtime.AppliedPod) podspec.Scrubber {
	pods := make([]*podspec.Desired, 0, len(applied))
	for _, p := range applied {
		pods = append(pods, p.Desired)
	}
	return podspec.NewScrubber(pods...)
}

// scrubJSON takes values of Secrets out of the texts of a JSON document. Its keys,
// numbers and form stay, so that it can be read whatever the values are.
func scrubJSON(s podspec.Scrubber, document []byte) []byte {
	return regexp.MustCompile(`"(?:[^"\\]|\\.)*"(?:\s*:)?`).ReplaceAllFunc(document, func(found []byte) []byte {
		var text string
		if json.Unmarshal(found, &text) != nil { // A key, with its colon.
			return found
		}
		clean := s.Text(text)
		if clean == text {
			return found
		}
		quoted, err := json.Marshal(clean)
		if err != nil {
			return []byte(`"(secret)"`)
		}
		return quoted
	})
}
