package document

import (
	"bytes"
	"errors"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	yamlv3 "go.yaml.in/yaml/v3"

	"github.com/podctl/podctl/podspec/fieldpath"
)

// syntaxProblem returns the reason and position why a document is not YAML. The document may be a Secret, so the
// problem does not repeat its text.
func (d *Document) syntaxProblem(err error) Problem {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	p := Problem{Class: ClassInvalid, File: d.File, Line: d.line + 1, Column: 1}
	if name, ok := strings.CutPrefix(text, "unknown anchor '"); ok {
		p.Line, p.Column = d.aliasPlace(strings.TrimSuffix(name, "' referenced"))
		p.Detail = "is not valid YAML: an alias (*name) refers to an anchor (&name) that is not defined before it; " +
			"if no alias is meant, put the value in quotes"
		return p
	}
	line, text := cutLine(text)
	if strings.HasPrefix(text, "did not find expected") {
		// The parser counts lines from 0, unlike the scanner.
		line++
	}
	if found := d.faultyLine(text); found > 0 {
		line = found
	}
	p.Line = d.line + max(line, 1)
	if tabIndents(d.text, line) && strings.HasPrefix(text, "found character that cannot start any token") {
		text = "found a tab character"
	}
	p.Detail = "is not valid YAML: " + plainWords(text)
	return p
}

// tabIndents reports whether a tab precedes the text of a line.
func tabIndents(text []byte, line int) bool {
	lines := bytes.Split(text, []byte("\n"))
	if line < 1 || line > len(lines) {
		return false
	}
	one := lines[line-1]
	return bytes.ContainsRune(one[:len(one)-len(bytes.TrimLeft(one, " \t-"))], '\t')
}

// cutLine splits the line number from a message of the YAML library. It is 0 if the message has none.
func cutLine(text string) (line int, rest string) {
	m := regexp.MustCompile(`^line (\d+): `).FindStringSubmatch(text)
	if m == nil {
		return 0, text
	}
	n, err := strconv.Atoi(m[1])
	if err != nil {
		return 0, text
	}
	return n, strings.TrimPrefix(text, m[0])
}

// searchMax limits the size of documents in which faultyLine searches.
const searchMax = 1 << 20

// faultyLine returns the first line that causes the library's fault, or 0 if it is not found. The library itself
// reports only where the surrounding construct begins. Text after the fault does not change it, so a binary search
// works.
func (d *Document) faultyLine(fault string) int {
	if len(d.text) > searchMax {
		return 0
	}
	lines := bytes.SplitAfter(d.text, []byte("\n"))
	end := make([]int, len(lines))
	for i, at := 0, 0; i < len(lines); i++ {
		at += len(lines[i])
		end[i] = at
	}
	has := func(i int) bool {
		var root yamlv3.Node
		err := yamlv3.Unmarshal(d.text[:end[i]], &root)
		if err == nil {
			return false
		}
		_, text := cutLine(strings.TrimPrefix(err.Error(), "yaml: "))
		return text == fault
	}
	i := sort.Search(len(lines), has)
	if i == len(lines) {
		return 0
	}
	return i + 1
}

// plainWords replaces the parser's messages with explanations for authors of manifests.
func plainWords(text string) string {
	for _, w := range []struct{ library, plain string }{
		{"did not find expected key", "a key is expected here; check the indentation, and quotes and brackets above"},
		{"did not find expected '-' indicator", "an item of the list (-) is expected here; check the indentation"},
		{"did not find expected ',' or ']'", "a list [...] is not closed, or lacks a comma"},
		{"did not find expected ',' or '}'", "a map {...} is not closed, or lacks a comma"},
		{"could not find expected ':'", "a key needs a colon and a space after it"},
		{"found unexpected end of stream", "a quote is not closed"},
		{
			"mapping values are not allowed",
			"this line has a second colon, or is indented too far; put the value in quotes",
		},
		{"found character that cannot start any token", "a value cannot begin with this character; put it in quotes"},
		{"found a tab character", "a tab is used where spaces are expected; YAML indents with spaces"},
	} {
		if strings.HasPrefix(text, w.library) {
			return w.plain
		}
	}
	return generalWords(text)
}

// aliasPlace returns the position of the first alias with this name.
func (d *Document) aliasPlace(name string) (line, column int) {
	alias := []byte("*" + name)
	for from := 0; ; {
		i := bytes.Index(d.text[from:], alias)
		if i < 0 {
			return d.line + 1, 1
		}
		from += i + len(alias)
		if next, _ := utf8.DecodeRune(d.text[from:]); !isAnchorLetter(next) {
			line, column = placeIn(d.text, from-len(alias))
			return d.line + line, column
		}
	}
}

func isAnchorLetter(r rune) bool {
	return r == '_' || r == '-' || (r < utf8.RuneSelf && (unicode.IsLetter(r) || unicode.IsDigit(r)))
}

// yamlWords lists the beginnings of the library's messages that do not repeat text of the document.
func yamlWords() []string {
	return []string{
		"did not find expected",
		"could not find expected",
		"found ",
		"mapping values are not allowed",
		"block sequence entries are not allowed",
		"mapping keys are not allowed",
		"block collection entries are not allowed",
		"exceeded max depth",
		"control characters are not allowed",
		"invalid leading UTF-8 octet",
		"invalid trailing UTF-8 octet",
		"invalid length of a UTF-8 sequence",
		"invalid Unicode character",
		"incomplete UTF-8 octet sequence",
		"document contains excessive aliasing",
		"map merge requires",
	}
}

func generalWords(text string) string {
	if slices.ContainsFunc(yamlWords(), func(words string) bool { return strings.HasPrefix(text, words) }) {
		return text
	}
	return "it cannot be read"
}

// conversionProblem returns the reason why YAML cannot be converted to JSON. The library's message quotes the value and
// often lacks the position.
func (d *Document) conversionProblem(err error) Problem {
	if n, path, why := unconvertible(d.root, ""); n != nil {
		return d.problem(n, path, why)
	}
	text := strings.TrimPrefix(err.Error(), "error converting YAML to JSON: ")
	twice := regexp.MustCompile(`(line \d+: )(key .* already set in map)`).FindStringSubmatch(text)
	if twice == nil {
		return d.syntaxProblem(errors.New(text))
	}
	p := d.syntaxProblem(errors.New(twice[1]))
	p.Detail = "is not valid YAML: " + twice[2]
	if d.MayBeSecret() {
		p.Detail = "is not valid YAML: a merge (<<) adds a key that already exists"
	}
	return p
}

// unconvertible returns the first value that cannot be JSON, with its path and the reason.
func unconvertible(n *yamlv3.Node, path string) (at *yamlv3.Node, where, why string) {
	switch n.Kind {
	case yamlv3.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			key := resolved(n.Content[i])
			if key.Kind != yamlv3.ScalarNode || key.ShortTag() == "!!null" {
				return key, path, "has a key that is not a string; put it in quotes"
			}
			if at, where, why = unconvertible(n.Content[i+1], fieldpath.Join(path, key.Value)); at != nil {
				return at, where, why
			}
		}
	case yamlv3.SequenceNode:
		for i, item := range n.Content {
			if at, where, why = unconvertible(item, fieldpath.Index(path, i)); at != nil {
				return at, where, why
			}
		}
	case yamlv3.ScalarNode:
		if why = unreadable(n); why != "" {
			return n, path, why
		}
	case yamlv3.DocumentNode, yamlv3.AliasNode:
	}
	return nil, "", ""
}

// unreadable returns the reason why a value cannot be converted to JSON, or an empty string.
func unreadable(n *yamlv3.Node) string {
	var value any
	if n.Decode(&value) != nil {
		return "is not valid YAML: a tag (!!name) does not match the type of its value"
	}
	if number, ok := value.(float64); ok && number-number != 0 {
		return "is not a number that a manifest can contain; put it in quotes if it is a string"
	}
	return ""
}
