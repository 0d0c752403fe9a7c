package logfile

import (
	"bytes"
	"encoding/json"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// entry is a line of a log or a part of one. The text ends with the end of the line, unless more of the line follows.
type entry struct {
	at     time.Time
	stream string
	text   []byte
}

// parser parses a line. It returns false if the line has another format.
type parser func(line []byte, e *entry) bool

// formatOf returns the format of a line, or nil if it is unknown.
func formatOf(line []byte) parser {
	for _, parse := range []parser{parseCRI, parseDocker} {
		if parse(line, &entry{}) {
			return parse
		}
	}
	return nil
}

// parseCRI parses the format of the CRI (time, stream, tags, text):
//
//	2026-05-04T12:00:00.000000001Z stdout F the text
//
// The first tag is P for a line that continues, and F for one that ends.
func parseCRI(line []byte, e *entry) bool {
	at, rest, _ := bytes.Cut(line, []byte{' '})
	stream, rest, found := bytes.Cut(rest, []byte{' '})
	tags, text, tagged := bytes.Cut(rest, []byte{' '})
	switch string(stream) {
	case string(runtimeapi.Stdout):
		e.stream = string(runtimeapi.Stdout)
	case string(runtimeapi.Stderr):
		e.stream = string(runtimeapi.Stderr)
	default:
		return false
	}
	if !found || !tagged {
		return false
	}
	tag, _, _ := bytes.Cut(tags, []byte(runtimeapi.LogTagDelimiter))
	if string(tag) == string(runtimeapi.LogTagPartial) {
		text = bytes.TrimSuffix(text, []byte{'\n'})
	}
	var err error
	e.at, err = time.Parse(time.RFC3339Nano, string(at))
	e.text = text
	return err == nil
}

// parseDocker parses the format of Docker's json-file driver.
func parseDocker(line []byte, e *entry) bool {
	var found struct {
		Log    string    `json:"log"`
		Stream string    `json:"stream"`
		Time   time.Time `json:"time"`
	}
	if json.Unmarshal(line, &found) != nil {
		return false
	}
	e.at, e.stream, e.text = found.Time, found.Stream, []byte(found.Log)
	return true
}
