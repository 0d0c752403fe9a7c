package model

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	kjson "sigs.k8s.io/json"
)

// MaxDocumentValues limits the values of a JSON document. A hundred pods need a tenth of it, and each value may use a
// kilobyte of memory.
const MaxDocumentValues = 250_000

// DecodeDocument decodes one of podctl's own JSON documents. It refuses a document with more values than podctl writes
// before it decodes any. The error names the line.
func DecodeDocument(text []byte, into any) error {
	if at := overfull(text, MaxDocumentValues); at > 0 {
		return fmt.Errorf("line %d: it holds more than %d values", lineAt(text, at), MaxDocumentValues)
	}
	// The decoder of manifests comes first, because it has cached the fields of a pod. The other one has better error
	// messages.
	if kjson.UnmarshalCaseSensitivePreserveInts(text, into) == nil {
		return nil
	}
	err := json.Unmarshal(text, into)
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		return fmt.Errorf("line %d: it is not valid JSON, or is truncated: %w", lineAt(text, syntax.Offset), err)
	}
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return fmt.Errorf("line %d: %s cannot be a %s", lineAt(text, wrong.Offset), wrong.Field, wrong.Value)
	}
	if err != nil {
		return fmt.Errorf("a value in it cannot be read: %s", strings.TrimPrefix(err.Error(), "json: "))
	}
	return nil
}

// overfull returns the offset of the first value above the limit; 0 if there is none. Every value follows a bracket or
// a comma outside of a string, or is the document.
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
