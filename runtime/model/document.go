package model

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	kjson "sigs.k8s.io/json"
)

// MaxDocumentValues bounds the values of a JSON document: a hundred pods need a
// tenth of them, and each may become a container of a kilobyte.
const MaxDocumentValues = 250_000

// DecodeDocument reads one of podctl's own JSON documents. One that holds more values
// than podctl writes is refused before anything is made of it; what is wrong is named
// with its line.
func DecodeDocument(text []byte, into any) error {
	if at := overfull(text, MaxDocumentValues); at > 0 {
		return fmt.Errorf("line %d: it holds more than %d values", lineAt(text, at), MaxDocumentValues)
	}
	// The decoder of manifests is tried first: what it has learnt of a pod's fields
	// serves again. The other one tells better what is wrong.
	if kjson.UnmarshalCaseSensitivePreserveInts(text, into) == nil {
		return nil
	}
	err := json.Unmarshal(text, into)
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		return fmt.Errorf("line %d: it is not valid JSON, or cut off: %w", lineAt(text, syntax.Offset), err)
	}
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return fmt.Errorf("line %d: %s cannot be a %s", lineAt(text, wrong.Offset), wrong.Field, wrong.Value)
	}
	if err != nil {
		return fmt.Errorf("a value in it cannot be read: %s", strings.TrimPrefix(err.Error(), "json: "))
	}
	return nil
}

// overfull is the offset of the first value too many; 0 when there is none. Every value
// comes after a bracket or a comma that stands outside of a text, or is the document.
func overfull(text []byte, limit int) int64 {
	inText := false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case inText && c == '\\':
			i++
		case c == '"':
			inText = !inText
		case !inText && (c == ',' || c == '[' || c == '{'):
			if limit--; limit < 0 {
				return int64(i)
			}
		}
	}
	return 0
}

func lineAt(text []byte, offset int64) int {
	return 1 + bytes.Count(text[:min(max(offset, 0), int64(len(text)))], []byte{'\n'})
}

// APIVersion is the version of the documents podctl writes.
const APIVersion = "podctl.io/v1alpha1"
