package podspec

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	yamlv3 "go.yaml.in/yaml/v3"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// mayBeSecret reports whether the document may be a Secret: what stands in it is not
// repeated in a problem. Only a document that says to be something else is not.
func (d *document) mayBeSecret() bool {
	kinds := d.kinds()
	return len(kinds) == 0 || slices.ContainsFunc(kinds, func(kind string) bool {
		return !slices.Contains([]string{"Pod", kindConfigMap, kindClaim}, kind)
	})
}

// kinds are the kinds that the document says to be; several while nobody has looked yet
// whether it gives a key twice.
func (d *document) kinds() []string {
	if d.kind != "" {
		return []string{d.kind}
	}
	if d.root == nil || d.root.Kind != yamlv3.MappingNode {
		return nil
	}
	var kinds []string
	for i := 0; i+1 < len(d.root.Content); i += 2 {
		if keyName(d.root.Content[i]) == "kind" {
			kinds = append(kinds, resolved(d.root.Content[i+1]).Value)
		}
	}
	return kinds
}

// shown is as much of a path as may be told. In what may be a Secret, what stands in the
// place of a key can be a piece of a value: a name is told if it is a field's, or could be a
// key's.
func (d *document) shown(path string) string {
	if path == "" || !d.mayBeSecret() {
		return path
	}
	t, told := reflect.TypeFor[v1.Secret](), ""
	if slices.Contains([]string{"List", "PodList"}, strings.Join(d.kinds(), " ")) {
		t = reflect.TypeFor[v1.List]()
	}
	for _, part := range splitPath(path) {
		next := step(t, part)
		if next == nil || !isTellable(deref(t), part) {
			return told
		}
		if t = deref(t); t.Kind() == reflect.Slice {
			told += "[" + part + "]"
		} else {
			told = keyPath(told, part)
		}
		t = next
	}
	return told
}

// isTellable reports whether a part of a path has the form of what it names.
func isTellable(t reflect.Type, part string) bool {
	if t.Kind() == reflect.Slice {
		_, err := strconv.Atoi(part)
		return err == nil
	}
	return t.Kind() != reflect.Map || len(validation.IsConfigMapKey(part)) == 0 || len(validation.IsQualifiedName(part)) == 0
}

// shownKey is the path of a key that is wrong itself, which in a Secret is not told.
func (d *document) shownKey(path, key string) string {
	if d.mayBeSecret() {
		return path
	}
	return joinPath(path, key)
}

// syntaxProblem says why a document is no YAML, at its place. Nobody knows what stands in
// such a document, so nothing of it is repeated.
func (d *document) syntaxProblem(err error) Problem {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	p := Problem{Class: ClassInvalid, File: d.file, Line: d.line + 1, Column: 1}
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
func (d *document) aliasPlace(name string) (line, column int) {
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

// yamlWords begin what the YAML library says without repeating what it has read.
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

// conversionProblem says why a document that is YAML cannot be made JSON. The library quotes
// what it cannot convert, and not always says where that is.
func (d *document) conversionProblem(err error) Problem {
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
	if d.mayBeSecret() {
		p.Detail = "is not valid YAML: a merge (<<) brings a key that is there already"
	}
	return p
}

// unconvertible finds the first value that no JSON can have, with its path and what is wrong
// with it.
func unconvertible(n *yamlv3.Node, path string) (at *yamlv3.Node, where, why string) {
	switch n.Kind {
	case yamlv3.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			key := resolved(n.Content[i])
			if key.Kind != yamlv3.ScalarNode || key.ShortTag() == "!!null" {
				return key, path, "has a key that is not a text; put it in quotes"
			}
			if at, where, why = unconvertible(n.Content[i+1], joinPath(path, key.Value)); at != nil {
				return at, where, why
			}
		}
	case yamlv3.SequenceNode:
		for i, item := range n.Content {
			if at, where, why = unconvertible(item, indexed(path, i)); at != nil {
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

// maxQuote bounds what a problem repeats of one value, in bytes.
const maxQuote = 200

// quote writes a text of the manifest so that it stays in its line, and not more of it than
// helps to find it.
func quote(text string) string {
	if len(text) <= maxQuote {
		return strconv.Quote(text)
	}
	return strconv.Quote(text[:maxQuote]) + "…"
}

// oneLine writes what a terminal would obey, and not show, as Go writes it in a text.
func oneLine(text string) string {
	var b strings.Builder
	for i, r := range text {
		switch {
		case r == utf8.RuneError && !strings.HasPrefix(text[i:], string(utf8.RuneError)):
			fmt.Fprintf(&b, `\x%02x`, text[i])
		case unicode.IsPrint(r):
			b.WriteRune(r)
		default:
			b.WriteString(strings.Trim(strconv.QuoteRuneToASCII(r), "'"))
		}
	}
	return b.String()
}
