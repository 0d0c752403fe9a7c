package document

import (
	"bytes"
	"errors"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	yamlv3 "go.yaml.in/yaml/v3"

	"github.com/podctl/podctl/podspec/fieldpath"
)

// syntaxProblem says why a document is not YAML, at its place. It may be a Secret, so nothing of
// it is repeated.
func (d *Document) syntaxProblem(err error) Problem {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	p := Problem{Class: ClassInvalid, File: d.File, Line: d.line + 1, Column: 1}
	if name, ok := strings.CutPrefix(text, "unknown anchor '"); ok {
		p.Line, p.Column = d.aliasPlace(strings.TrimSuffix(name, "' referenced"))
		p.Detail = "is not valid YAML: an alias (*name) stands for an anchor (&name) that is not before it; put the value in quotes if it is none"
		return p
	}
	if m := regexp.MustCompile(`^line (\d+): `).FindStringSubmatch(text); m != nil {
		text = strings.TrimPrefix(text, m[0])
		if n, convErr := strconv.Atoi(m[1]); convErr == nil {
			p.Line = d.line + n
		}
		if strings.HasPrefix(text, "did not find expected") {
			// The parser, unlike the scanner, counts lines from 0.
			p.Line++
		}
	}
	p.Detail = "is not valid YAML: " + generalWords(text)
	return p
}

// aliasPlace is where an alias of that name stands first.
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

// yamlWords begin the messages of the YAML library that do not repeat what it has read.
func yamlWords() []string {
	return []string{
		"did not find expected", "could not find expected", "found ", "mapping values are not allowed", "block sequence entries are not allowed",
		"mapping keys are not allowed", "block collection entries are not allowed", "exceeded max depth", "control characters are not allowed",
		"invalid leading UTF-8 octet", "invalid trailing UTF-8 octet", "invalid length of a UTF-8 sequence", "invalid Unicode character",
		"incomplete UTF-8 octet sequence", "document contains excessive aliasing", "map merge requires",
	}
}

func generalWords(text string) string {
	if slices.ContainsFunc(yamlWords(), func(words string) bool { return strings.HasPrefix(text, words) }) {
		return text
	}
	return "it cannot be read"
}

// conversionProblem says why YAML cannot be converted to JSON. The library's own message quotes
// the value, and does not always have its place.
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
		p.Detail = "is not valid YAML: a merge (<<) brings a key that is there already"
	}
	return p
}

// unconvertible finds the first value that cannot be JSON, with its path and what is wrong
// with it.
func unconvertible(n *yamlv3.Node, path string) (at *yamlv3.Node, where, why string) {
	switch n.Kind {
	case yamlv3.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			key := resolved(n.Content[i])
			if key.Kind != yamlv3.ScalarNode || key.ShortTag() == "!!null" {
				return key, path, "has a key that is not a text; put it in quotes"
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

// unreadable says what is wrong with a value that cannot be made JSON; empty if nothing is.
func unreadable(n *yamlv3.Node) string {
	var value any
	if n.Decode(&value) != nil {
		return "is not valid YAML: a tag (!!name) is for another kind of value than stands there"
	}
	if number, ok := value.(float64); ok && number-number != 0 {
		return "is no number that a manifest can have; put it in quotes if it is a text"
	}
	return ""
}
