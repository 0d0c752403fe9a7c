package redaction

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	yaml "go.yaml.in/yaml/v3"
)

// part is a text that is secret by itself.
type part struct {
	text string
	// word is set for an ordinary word, which is hidden only where it stands alone.
	word bool
}

// Values are split up to maxNesting levels: for example a document, base64 in it, and user and password in that. The
// parts of a value have at most maxGrowth bytes for each of its bytes, plus baseGrowth.
const maxNesting, maxGrowth, baseGrowth = 4, 8, 1 << 10

// shortestLeaf is the minimum length in bytes of a document's part that is searched within words, and of a text that is
// tried as base64.
const shortestLeaf = 8

// parts collects the secret parts of values. For a document (JSON, YAML, settings in lines, a URL) they are the values
// behind its keys, so that keys, hosts and ordinary words stay readable in texts. Another value is one part.
type parts struct {
	all map[part]bool
	// room is how many bytes the parts of the value may still have.
	room int
}

// value adds the parts of a value. If they are too many, it also adds the whole value.
func (p *parts) value(value string) {
	p.room = len(value)*maxGrowth + baseGrowth
	if p.add("", value, maxNesting); p.room < 0 {
		p.all[part{text: strings.TrimSpace(value)}] = true
	}
}

// add splits a text. key is the key before it, or empty. A document without a secret part counts as a whole. add
// reports whether the text has a secret part.
func (p *parts) add(key, text string, nesting int) bool {
	text = strings.TrimSpace(text)
	if len(text) < shortest {
		return false
	}
	if nesting > 0 && (p.url(text, nesting) || p.documents(key, text, nesting) || p.settings(text, nesting)) {
		return true
	}
	if strings.HasPrefix(text, "-----BEGIN") {
		text = pemMarks().ReplaceAllString(text, "")
	}
	found := p.leaf(key, text)
	if nesting > 0 {
		p.inner(key, text, nesting)
	}
	return found
}

func (p *parts) leaf(key, text string) bool {
	if len(text) < shortest || isOrdinary(key, text) {
		return false
	}
	one := part{text: text, word: key != "" && len(text) < shortestLeaf}
	if p.room >= 0 && !p.all[one] {
		p.all[one] = true
		p.room -= len(text)
	}
	return true
}

// inner adds the secret parts of a text that is no document: decoded base64, settings on a line, and
// user:password@host.
func (p *parts) inner(key, text string, nesting int) {
	words := strings.Fields(text)
	for _, word := range append(words, strings.Join(words, "")) {
		decoded, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(word, "="))
		if err != nil || len(word) < shortestLeaf {
			continue
		}
		if inner := string(decoded); utf8.ValidString(inner) && !strings.ContainsFunc(inner, notText) {
			p.userInfo(inner)
			p.add(key, inner, nesting-1)
		}
	}
	for line := range strings.Lines(text) {
		p.fields(line, " ;,&\n", nesting)
		if at := strings.LastIndex(line, "@"); at > 0 {
			p.userInfo(line[:at])
		}
	}
}

func notText(r rune) bool { return unicode.IsControl(r) && !unicode.IsSpace(r) }

// userInfo adds user:password, and the password.
func (p *parts) userInfo(text string) {
	if _, password, found := strings.Cut(text, ":"); found {
		p.leaf("password", text)
		p.leaf("password", password)
	}
}

// url adds the secret parts of a URL: user and password, the path, and values of the query.
func (p *parts) url(text string, nesting int) (found bool) {
	scheme, rest, isURL := strings.Cut(text, "://")
	const schemeLetters = "abcdefghijklmnopqrstuvwxyz0123456789+-."
	if !isURL || strings.ContainsAny(text, " \n\t") || strings.Trim(scheme, schemeLetters) != "" {
		return false
	}
	if before, after, has := strings.Cut(rest, "@"); has {
		p.userInfo(before)
		found = p.leaf("password", before) // It may be a token in place of a user.
		rest = after
	}
	if at := strings.IndexAny(rest, "/?#"); at >= 0 {
		path, query, _ := strings.Cut(rest[at:], "?")
		found = len(path) > piece && p.leaf("", strings.TrimLeft(path, "/")) || found
		found = p.fields(query, "&;", nesting) || found
	}
	return found
}

// fields adds the values of K=V pairs on one line.
func (p *parts) fields(text, separators string, nesting int) (found bool) {
	for _, field := range strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(separators, r) }) {
		if key, value, ok := setting(field); ok {
			found = p.add(key, value, nesting-1) || found
		}
	}
	return found
}

// settings splits a text in which every line is K=V or K: V, a section or a comment (dotenv, ini, properties).
func (p *parts) settings(text string, nesting int) (found bool) {
	pairs := map[string]string{}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || strings.ContainsRune("#;!", rune(line[0])) || line[0] == '[' && line[len(line)-1] == ']' {
			continue
		}
		key, value, ok := setting(line)
		if !ok {
			return false
		}
		pairs[key] = value
	}
	for key, value := range pairs {
		found = p.add(key, value, nesting-1) || found
	}
	// A single pair may be a password with such a character.
	return found && len(pairs) > 1
}

// longestKey is the maximum length in bytes of a key of a setting, and of an ordinary value.
const longestKey = 64

// setting parses K=V or K: V, and removes quotes around the value.
func setting(line string) (key, value string, ok bool) {
	line = strings.TrimSpace(strings.TrimPrefix(strings.TrimPrefix(line, "export "), "- "))
	at := strings.IndexAny(line, "=:")
	if at <= 0 || at > longestKey {
		return "", "", false
	}
	key, value = strings.TrimSpace(line[:at]), strings.TrimSpace(line[at+1:])
	if n := len(value); n > 1 && strings.IndexByte(`"'`, value[0]) >= 0 && value[n-1] == value[0] {
		value = value[1 : n-1]
	}
	isKey := !strings.ContainsFunc(key, func(r rune) bool {
		return r >= utf8.RuneSelf || !isWord(byte(r)) && !strings.ContainsRune("_.-/", r)
	})
	return key, value, isKey && strings.Trim(value, "=") != ""
}

// documents adds the leaves of JSON and YAML documents.
func (p *parts) documents(key, text string, nesting int) (found bool) {
	if text[0] != '{' && text[0] != '[' && !strings.Contains(text, "\n") {
		return false
	}
	var documents []*yaml.Node
	decoder := yaml.NewDecoder(strings.NewReader(normalJSON(text)))
	for {
		var document yaml.Node
		err := decoder.Decode(&document)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil || len(document.Content) != 1 || document.Content[0].Kind == yaml.ScalarNode {
			return false
		}
		documents = append(documents, document.Content[0])
	}
	for _, document := range documents {
		found = p.node(key, document, nesting) || found
	}
	return found
}

// normalJSON returns a JSON document without the escapes that YAML does not have.
func normalJSON(text string) string {
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	var document any
	if decoder.Decode(&document) == nil && !decoder.More() {
		if normal, err := json.Marshal(document); err == nil {
			return string(normal)
		}
	}
	return text
}

// node adds the leaves of a document. It does not follow aliases: their targets are in the document, and expanded they
// may be far larger.
func (p *parts) node(key string, n *yaml.Node, nesting int) (found bool) {
	switch n.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			found = p.node(n.Content[i].Value, n.Content[i+1], nesting) || found
		}
	case yaml.AliasNode:
		// A value that is not secret behind the key of its anchor may be secret behind this key.
		return n.Alias.Kind == yaml.ScalarNode && len(n.Alias.Value) <= longestKey && p.leaf(key, n.Alias.Value)
	case yaml.ScalarNode:
		return p.add(key, n.Value, nesting-1)
	case yaml.DocumentNode, yaml.SequenceNode:
		for _, inner := range n.Content {
			found = p.node(key, inner, nesting) || found
		}
	}
	return found
}

// isOrdinary reports whether a value in a Secret is not secret itself. Examples are a switch, a small number, a time,
// or a plain word, host or path behind a key that indicates one. Such values occur in many texts.
func isOrdinary(key, text string) bool {
	name := strings.Map(lettersOnly, strings.ToLower(key))
	is := func(word string) bool { return strings.Contains(name, word) }
	if key == "" || len(text) > longestKey || slices.ContainsFunc(secretKeys(), is) {
		return false
	}
	if plainValue().MatchString(text) {
		return true
	}
	isPlain := func(word string) bool { return strings.HasSuffix(name, word) }
	return slices.ContainsFunc(plainKeys(), isPlain) && plainWords().MatchString(text)
}

func lettersOnly(r rune) rune {
	if r >= 'a' && r <= 'z' {
		return r
	}
	return -1
}

// Patterns for values. plainValue is ordinary behind any key. plainWords matches words and small numbers (names, hosts,
// paths, versions, dates). pemMarks matches marks that are in many texts.
//
//nolint:gochecknoglobals // each is compiled once, when it is needed
var (
	plainValue = expression(`^(?i:true|false|null|none|auto|default|enabled|disabled|localhost|[0-9]{1,5}|` +
		`[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:[.][0-9]{1,9})?)?` +
		`(?:Z|[-+][0-9]{2}:?[0-9]{2})?)$`)
	plainWords = expression(`^(?:[-._/:]+|\b(?:[a-z]{1,20}|[0-9]{1,5}|[a-z0-9]{1,7})\b)*$`)
	pemMarks   = expression(`-----(?:BEGIN|END)[^-]*-----`)
)

func expression(text string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(text) })
}

// secretKeys are words in the names of secret values. plainKeys are endings of names of values that are not secret.
func secretKeys() []string {
	return strings.Fields(`pass pwd secret token key auth cred pin cert salt private code seed sign hash
		phrase cookie session`)
}

func plainKeys() []string {
	return strings.Fields(`host hostname hosts server addr address endpoint domain region zone port env environment
		mode level driver dialect engine type kind format protocol scheme version timeout interval debug database
		dbname db schema path dir file bucket encoding locale timezone registry namespace image service cluster
		user username`)
}
