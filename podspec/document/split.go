package document

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/podctl/podctl/podspec/input"
)

// byteOrderMark may precede a source and each document in it.
const byteOrderMark = "\uFEFF"

// blanks are YAML's characters for white space and line ends.
const blanks = " \t\r\n"

// IsEmpty reports whether a text has no document: only blanks and comments, or nothing.
func IsEmpty(text []byte) bool {
	text, err := inUTF8(text)
	return err == nil && len(splitDocuments(input.Source{Text: text})) == 0
}

// Split splits a source into its documents. It returns none if the source as a whole cannot be read.
func Split(s input.Source) ([]*Document, []Problem) {
	refuse := func(line int, detail string) []Problem {
		return []Problem{{Class: ClassInvalid, File: s.Name, Line: line, Column: 1, Detail: detail}}
	}
	var err error
	if s.Text, err = inUTF8(s.Text); err != nil {
		return nil, refuse(1, err.Error())
	}
	if hidden, found := hiddenLineEnd(s); found {
		return nil, []Problem{hidden}
	}
	if line := overfullLine(s.Text, maxMarks); line > 0 {
		return nil, refuse(line, fmt.Sprintf(
			"holds more than %d lines, commas and brackets: podctl does not read a source of that size", maxMarks))
	}
	docs := splitDocuments(s)
	if len(docs) == 0 {
		return nil, refuse(1, "contains no Kubernetes object")
	}
	return docs, nil
}

// splitDocuments splits a source at YAML's markers. A line that begins with "---" begins a document and may have its
// first text. A line that begins with "..." ends one. It omits documents that have only comments and blanks, and stops
// after the maximum number of documents.
func splitDocuments(s input.Source) []*Document {
	var docs []*Document
	var current bytes.Buffer
	start, line := 0, 0
	flush := func(next int) {
		if hasContent(current.Bytes()) {
			docs = append(docs, &Document{File: s.Name, line: start, text: bytes.Clone(current.Bytes())})
		}
		current.Reset()
		start = next
	}
	for text := range bytes.Lines(s.Text) {
		line++
		if current.Len() == 0 {
			// The YAML library accepts the mark at the start of every document.
			text = bytes.TrimLeft(text, byteOrderMark)
		}
		rest, cuts := marker(text)
		if cuts {
			next := line
			if hasContent(rest) {
				next = line - 1
			}
			if flush(next); len(docs) > MaxDocuments {
				return docs
			}
		}
		if !cuts || hasContent(rest) {
			current.Write(text)
		}
	}
	flush(line)
	return docs
}

// marker reports whether a line begins with a document marker, and returns the text after it. A line end, a space or a
// tab must follow the marker.
func marker(line []byte) (rest []byte, ok bool) {
	rest, ok = bytes.CutPrefix(line, []byte("---"))
	if !ok {
		rest, ok = bytes.CutPrefix(line, []byte("..."))
	}
	return rest, ok && (len(rest) == 0 || bytes.IndexByte([]byte(blanks), rest[0]) >= 0)
}

func hasContent(text []byte) bool {
	for line := range bytes.Lines(text) {
		if trimmed := bytes.Trim(line, blanks); len(trimmed) > 0 && trimmed[0] != '#' {
			return true
		}
	}
	return false
}

// unsplit refuses YAML between documents that podctl does not read: directives, text after an end marker, and a
// document in UTF-16 among others in UTF-8.
func (d *Document) unsplit() []Problem {
	line := d.line
	if bytes.HasPrefix(d.text, []byte{0xFF, 0xFE}) || bytes.HasPrefix(d.text, []byte{0xFE, 0xFF}) {
		return []Problem{d.Whole("is not valid UTF-8: save the whole file as UTF-8")}
	}
	for text := range bytes.Lines(d.text) {
		line++
		detail := ""
		switch trimmed := bytes.Trim(text, blanks); {
		case len(trimmed) == 0 || trimmed[0] == '#':
			continue
		case text[0] == '%':
			detail = "is a directive, which podctl does not read: remove the line"
		case bytes.HasPrefix(text, []byte("...")):
			detail = `"..." ends a document: start the next one on a new line`
		default:
			return nil
		}
		return []Problem{{Class: ClassInvalid, File: d.File, Line: line, Column: 1, Detail: detail}}
	}
	return nil
}

// hiddenLineEnd finds the first character that ends a line in YAML, but that most editors do not show as a line end.
// Text after a comment would then take effect although it looks like part of the comment.
func hiddenLineEnd(s input.Source) (Problem, bool) {
	at, found := len(s.Text), ""
	for _, end := range []string{"\r", "\u0085", "\u2028", "\u2029"} {
		if i := indexOfEnd(s.Text[:at], end, s.Text); i >= 0 {
			at, found = i, end
		}
	}
	if found == "" {
		return Problem{}, false
	}
	line, column := placeIn(s.Text, at)
	return Problem{Class: ClassInvalid, File: s.Name, Line: line, Column: column, Detail: lineEndDetail(found)}, true
}

// indexOfEnd finds a character in the part of a source. It skips a carriage return before a line feed, which is a usual
// line end.
func indexOfEnd(part []byte, end string, text []byte) int {
	for from := 0; ; {
		i := bytes.Index(part[from:], []byte(end))
		if i < 0 {
			return -1
		}
		if !bytes.HasPrefix(text[from+i:], []byte("\r\n")) {
			return from + i
		}
		from += i + 1
	}
}

// placeIn returns the line and column of a byte of a text, counted from 1.
func placeIn(text []byte, at int) (line, column int) {
	start := bytes.LastIndexByte(text[:at], '\n') + 1
	return bytes.Count(text[:at], []byte{'\n'}) + 1, utf8.RuneCount(text[start:at]) + 1
}

func lineEndDetail(end string) string {
	if end == "\r" {
		return `is a carriage return without a line feed, which YAML treats as the end of a line: ` +
			`end lines with LF or CRLF, and write "\r" in double quotes for the character`
	}
	r, _ := utf8.DecodeRuneInString(end)
	return fmt.Sprintf(`is the character U+%04X, which YAML treats as the end of a line: `+
		`remove it, or write "\u%04x" in double quotes`, r, r)
}

// inUTF8 converts a source to UTF-8. YAML may also be in UTF-16, which begins with a byte order mark.
func inUTF8(text []byte) ([]byte, error) {
	var order binary.ByteOrder
	switch {
	case bytes.HasPrefix(text, []byte{0xFF, 0xFE}):
		order = binary.LittleEndian
	case bytes.HasPrefix(text, []byte{0xFE, 0xFF}):
		order = binary.BigEndian
	default:
		return text, nil
	}
	units := make([]uint16, len(text)/2)
	for i := range units {
		units[i] = order.Uint16(text[2*i:])
	}
	runes := utf16.Decode(units)
	if len(text)%2 != 0 || slices.Contains(runes, utf8.RuneError) {
		return nil, errors.New("is not valid UTF-16: save it as UTF-8")
	}
	return []byte(string(runes)), nil
}
