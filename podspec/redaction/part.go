package redaction

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	yaml "go.yaml.in/yaml/v3"
)

// maxNesting is how deep values are taken apart: a document in a string of a document.
const maxNesting = 4

// part is a text that is secret by itself.
type part struct {
	text string
	// word: it is an ordinary one, which is hidden only where it stands alone.
	word bool
}

// What the parts of values may take. A document may say the same again and again, and a part
// is in several larger ones.
const (
	// maxLeaves and maxBytes are how many parts all values have together, and their bytes.
	maxLeaves, maxBytes = 1 << 17, 1 << 27
	// maxGrowth is how many bytes the parts of a value have for one of its own, baseGrowth how
	// many they have anyway.
	maxGrowth, baseGrowth = 8, 1 << 10
)

// parts are what is secret in values.
type parts struct {
	leaves []part
	// structured: the last value is a document, whose keys, hosts and marks are no secret.
	structured bool
	// room is how many bytes the parts of the last value may still have, full that there was
	// not enough.
	room, bytes int
	full        bool
	seen        map[part]bool
}

// of returns the parts of a value that no value before has. Where they are too many, the rest
// of the value is looked for like that of one that is no document: as a whole and in pieces.
func (p *parts) of(value string) []part {
	before := len(p.leaves)
	p.full, p.room = false, min(len(value)*maxGrowth+baseGrowth, maxBytes-p.bytes)
	p.structured = p.add("", value, maxNesting)
	if p.full {
		p.structured = false
		p.leaves = append(p.leaves, part{text: strings.TrimSpace(value)})
	}
	return p.leaves[before:]
}

// add takes a text apart that stands behind a key; empty for none. It reports whether the
// text is a document.
func (p *parts) add(key, text string, nesting int) bool {
	text = strings.TrimSpace(text)
	if len(text) < shortest || p.full {
		return false
	}
	if nesting <= 0 {
		p.leaf(key, text)
		return false
	}
	for _, take := range []func(key, text string, nesting int) bool{p.json, p.pem, p.url, p.yaml, p.settings} {
		if take(key, text, nesting) {
			return true
		}
	}
	p.plain(key, text, nesting)
	return false
}

func (p *parts) leaf(key, text string) {
	one := part{text: text, word: key != "" && len(text) < shortestLine}
	if len(text) < shortest || p.full || p.seen[one] || isOrdinary(key, text) {
		return
	}
	if len(text) > p.room || len(p.leaves) >= maxLeaves {
		p.full = true
		return
	}
	p.seen[one] = true
	p.leaves = append(p.leaves, one)
	p.room -= len(text)
	p.bytes += len(text)
}

// json takes documents apart, one after the other.
func (p *parts) json(key, text string, nesting int) bool {
	if text[0] != '{' && text[0] != '[' {
		return false
	}
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	var documents []any
	for {
		var document any
		err := decoder.Decode(&document)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return false
		}
		documents = append(documents, document)
	}
	p.walk(key, documents, nesting)
	return true
}

// yaml takes documents of more than one line apart.
func (p *parts) yaml(key, text string, nesting int) bool {
	if !strings.Contains(text, "\n") || !strings.Contains(text, ":") && !strings.Contains(text, "- ") {
		return false
	}
	documents := yamlDocuments(text)
	for _, document := range documents {
		p.node(key, document, nesting)
	}
	if len(documents) == 0 {
		return false
	}
	// What is a comment for YAML may be none for who reads it.
	for line := range strings.Lines(text) {
		if name, value, ok := setting(line); ok {
			p.leaf(name, value)
		}
	}
	return true
}

// yamlDocuments are the documents in a text; none when one of them is no list and no mapping.
func yamlDocuments(text string) []*yaml.Node {
	var documents []*yaml.Node
	for decoder := yaml.NewDecoder(strings.NewReader(text)); ; {
		var document yaml.Node
		err := decoder.Decode(&document)
		if errors.Is(err, io.EOF) {
			return documents
		}
		if err != nil || len(document.Content) != 1 {
			return nil
		}
		switch root := document.Content[0]; {
		case root.Kind == yaml.MappingNode || root.Kind == yaml.SequenceNode:
			documents = append(documents, root)
		case root.ShortTag() != "!!null":
			return nil
		}
	}
}

// node adds the leaves of a YAML document. Aliases are not followed: what they stand for is
// in the document, and written out they may be far larger than it.
func (p *parts) node(key string, n *yaml.Node, nesting int) {
	switch n.Kind {
	case yaml.DocumentNode: // Its content is walked.
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			name := n.Content[i]
			if name.Anchor != "" {
				p.node("", name, nesting)
			}
			p.node(name.Value, n.Content[i+1], nesting)
		}
	case yaml.SequenceNode:
		for _, inner := range n.Content {
			p.node(key, inner, nesting)
		}
	case yaml.AliasNode:
		// What is no secret behind the key of its anchor may be one behind this.
		if n.Alias.Kind == yaml.ScalarNode && len(n.Alias.Value) <= longestKey {
			p.leaf(key, n.Alias.Value)
		}
	case yaml.ScalarNode:
		p.scalar(key, n, nesting)
	}
}

// scalar adds a leaf of a YAML document: a number as it is written and as it is printed.
func (p *parts) scalar(key string, n *yaml.Node, nesting int) {
	switch n.ShortTag() {
	case "!!null", "!!bool":
	case "!!int", "!!float":
		p.leaf(key, n.Value)
		var number any
		if n.Decode(&number) == nil {
			p.leaf(key, fmt.Sprint(number))
		}
	default:
		p.add(key, n.Value, nesting-1)
	}
}

// walk adds the leaves of a JSON document.
func (p *parts) walk(key string, value any, nesting int) {
	switch v := value.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			p.walk(name, v[name], nesting)
		}
	case []any:
		for _, inner := range v {
			p.walk(key, inner, nesting)
		}
	case string:
		p.add(key, v, nesting-1)
	case nil, bool:
	default:
		p.leaf(key, fmt.Sprint(v))
	}
}

// encoded adds what base64 or hex digits stand for when that is text: credentials of docker
// and HTTP, files in a kubeconfig.
func (p *parts) encoded(key, text string, nesting int) {
	if len(text) < shortestLine {
		return
	}
	text = strings.Join(strings.Fields(text), "")
	digits := strings.TrimRight(text, "=")
	for _, decode := range []func(string) ([]byte, error){
		base64.RawStdEncoding.DecodeString, base64.RawURLEncoding.DecodeString, hex.DecodeString,
	} {
		decoded, err := decode(digits)
		inner := strings.Trim(string(decoded), "\x00")
		if err != nil || !utf8.ValidString(inner) || strings.ContainsFunc(inner, notText) {
			continue
		}
		p.userInfo(inner)
		p.add(key, inner, nesting-1)
	}
}

// userInfo adds user:password, and the password.
func (p *parts) userInfo(text string) {
	user, password, found := strings.Cut(text, ":")
	if !found {
		return
	}
	p.token(user)
	for _, one := range []string{text, password} {
		p.leaf("password", one)
		if plain, err := url.PathUnescape(one); err == nil && plain != one {
			p.leaf("password", plain)
		}
	}
}

// pem adds what stands between the marks of PEM blocks.
func (p *parts) pem(_, text string, _ int) bool {
	if !strings.HasPrefix(text, "-----BEGIN") {
		return false
	}
	var body []string
	flush := func() {
		p.leaf("", strings.Join(body, "\n"))
		body = nil
	}
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "-----") {
			flush()
			continue
		}
		body = append(body, line)
		if len(line) >= shortestLine {
			p.leaf("", line)
		}
	}
	flush()
	return true
}

// url adds what is secret in a URL: user and password, the path, values of the query.
func (p *parts) url(_, text string, nesting int) bool {
	scheme, rest, found := strings.Cut(text, "://")
	if !found || strings.ContainsAny(text, " \n\t") || strings.ContainsFunc(scheme, func(r rune) bool {
		return r >= utf8.RuneSelf || !isWord(byte(r)) && r != '+' && r != '-' && r != '.'
	}) {
		return false
	}
	if at := strings.LastIndex(rest, "@"); at >= 0 && strings.Contains(rest[:at], ":") {
		p.userInfo(rest[:at])
		rest = rest[at+1:]
	} else if at := strings.IndexAny(rest, "@/?#"); at >= 0 && rest[at] == '@' {
		p.leaf("password", rest[:at]) // A token in the place of a user.
		rest = rest[at+1:]
	}
	path := strings.IndexAny(rest, "/?#")
	if path < 0 {
		return true
	}
	where, query, _ := strings.Cut(rest[path:], "?")
	if len(where) > piece {
		p.leaf("", strings.TrimLeft(where, "/"))
	}
	p.fields(query, "&;", nesting)
	return true
}

// fields adds the values of K=V pairs on one line.
func (p *parts) fields(text, separators string, nesting int) {
	for _, field := range strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(separators, r) }) {
		if key, value, ok := setting(field); ok && len(value) < len(text) {
			p.value(key, value, nesting)
		}
	}
}

// value adds the value of a setting, and what of it is before a comment.
func (p *parts) value(key, value string, nesting int) {
	p.add(key, value, nesting-1)
	for _, mark := range []string{" #", "\t#", " ;", "\t;"} {
		if before, _, found := strings.Cut(value, mark); found {
			p.add(key, unquoted(strings.TrimSpace(before)), nesting-1)
		}
	}
}

// settings takes a text apart in which every line is K=V or K: V, a section or a comment
// (dotenv, ini, properties, flat YAML).
func (p *parts) settings(_, text string, nesting int) bool {
	type pair struct{ key, value string }
	var pairs []pair
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || strings.ContainsRune("#;!", rune(line[0])) || line[0] == '[' && line[len(line)-1] == ']' {
			continue
		}
		key, value, ok := setting(line)
		if !ok {
			return false
		}
		pairs = append(pairs, pair{key, value})
	}
	// One alone may be a password with such a character in it.
	if len(pairs) == 0 || len(pairs) == 1 && !strings.Contains(pairs[0].value, "://") || slices.ContainsFunc(pairs, func(one pair) bool { return strings.Trim(one.value, "|>-+") == "" && one.value != "" }) {
		return false
	}
	for _, one := range pairs {
		p.value(one.key, one.value, nesting)
	}
	return true
}

// longestKey is the longest key of a setting, in bytes.
const longestKey = 64

// setting reads K=V or K: V, with the quotes of the value taken off.
func setting(line string) (key, value string, ok bool) {
	line = strings.TrimSpace(strings.TrimPrefix(strings.TrimPrefix(line, "export "), "- "))
	at := strings.IndexAny(line, "=:")
	if at <= 0 {
		return "", "", false
	}
	key, value = strings.Trim(strings.TrimSpace(line[:at]), `"'`), strings.TrimSpace(line[at+1:])
	if len(key) > longestKey || strings.ContainsFunc(key, func(r rune) bool {
		return r >= utf8.RuneSelf || !isWord(byte(r)) && !strings.ContainsRune("_.-/@", r)
	}) || strings.Trim(value, "=") == "" && len(value) > 0 {
		return "", "", false
	}
	return key, unquoted(value), true
}

func unquoted(value string) string {
	for _, quote := range []string{`"`, `'`, "`"} {
		if end := strings.LastIndex(value, quote); end > 0 && strings.HasPrefix(value, quote) {
			return value[1:end]
		}
	}
	return value
}

// plain adds a text that is no document: as a whole, its longer lines, and what looks like
// a setting, like user:password@host or like no ordinary word in it.
func (p *parts) plain(key, text string, nesting int) {
	p.leaf(key, text)
	p.encoded(key, text, nesting)
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if len(line) >= shortestLine && line != text {
			p.leaf("", line)
		}
		if name, value, ok := setting(line); ok {
			p.value(name, value, nesting)
		}
		p.fields(line, " ;,&", nesting)
		if at := strings.LastIndex(line, "@"); at > 0 {
			p.userInfo(line[:at])
		}
		if !isOrdinary(key, text) {
			p.words(line, nesting)
		}
	}
}

// words adds the words of a line that are not ordinary, and those behind a word that says
// what they are: options of a command, netrc, pgpass.
func (p *parts) words(line string, nesting int) {
	words := strings.FieldsFunc(line, isBlankOrQuote)
	for i, word := range words {
		if strings.Contains(word, "://") && p.url("", word, nesting-1) {
			continue
		}
		p.tokens(word, nesting)
		named := i > 0 && isSecretKey(words[i-1])
		if named && (len(words) == 2 || words[i-1][0] == '-' || words[0] == "machine" || words[0] == "default") {
			p.leaf("password", word)
		}
	}
	// .pgpass is host:port:database:user:password.
	if len(words) == 1 && strings.Count(line, ":") == 4 {
		p.leaf("password", line[strings.LastIndex(line, ":")+1:])
	}
}

func isBlankOrQuote(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune("\"'`", r) }

// tokens adds what is between the separators of a word, keys left out.
func (p *parts) tokens(word string, nesting int) {
	for word != "" {
		token, rest := word, ""
		if end := strings.IndexAny(word, "=:,;<>"); end >= 0 {
			token, rest = word[:end], word[end:]
		}
		after := strings.TrimLeft(rest, "=:,;<>")
		if after == "" || rest[0] != '=' && rest[0] != ':' {
			p.token(token)
			p.encoded("", token, min(nesting, 2))
		}
		word = after
	}
}

// shortestToken is the shortest word that is looked for although nothing says that it is a
// secret, in bytes.
const shortestToken = 6

// token adds a word unless it is an ordinary one.
func (p *parts) token(word string) {
	word = strings.Trim(word, "()[]{}.!?")
	if len(word) >= shortestToken && !isPlainWord(word, 4) {
		p.leaf("password", word)
	}
}

// longestWord is the longest run of letters that is an ordinary word, in bytes, and
// longestNumber the longest run of digits that is an ordinary number.
const longestWord, longestNumber = 20, 5

// isPlainWord reports whether a text is of words and small numbers, as names, hosts, paths,
// versions and dates are. What is of letters and digits has at most so many bytes.
func isPlainWord(text string, mixed int) bool {
	for one := range strings.FieldsFuncSeq(text, func(r rune) bool { return strings.ContainsRune("._-/:@+", r) }) {
		digits := strings.Count(strings.Map(digitsAsOne, one), "0")
		letters := len(one) - digits
		if strings.ContainsFunc(one, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) ||
			letters > longestWord || letters == 0 && digits > longestNumber || letters > 0 && digits > 0 && len(one) > mixed {
			return false
		}
	}
	return true
}

func digitsAsOne(r rune) rune {
	if unicode.IsDigit(r) {
		return '0'
	}
	return r
}

func isSecretKey(key string) bool {
	name := strings.Map(lettersOnly, strings.ToLower(key))
	return slices.ContainsFunc(secretKeys(), func(word string) bool { return strings.Contains(name, word) })
}

// isOrdinary reports whether a value is no secret although it is in one: a switch, a small
// number, or a plain word, host or path behind a key that says so. Texts are full of them.
func isOrdinary(key, text string) bool {
	switch {
	case key == "":
		return false
	case len(text) > longestKey || isSecretKey(key):
		return false
	case slices.Contains([]string{"true", "false", "null", "none", "auto", "default", "enabled", "disabled", "localhost"}, strings.ToLower(text)):
		return true
	case len(text) <= 5 && strings.Trim(text, "0123456789") == "":
		return true
	}
	name := strings.Map(lettersOnly, strings.ToLower(key))
	return slices.ContainsFunc(plainKeys(), func(word string) bool { return strings.HasSuffix(name, word) }) &&
		strings.Trim(text, "abcdefghijklmnopqrstuvwxyz0123456789.-_/:") == "" && isPlainWord(text, shortestLine-1)
}

func lettersOnly(r rune) rune {
	if r >= 'a' && r <= 'z' {
		return r
	}
	return -1
}

// secretKeys are words in the names of what is secret, plainKeys the ends of names of what
// is not.
func secretKeys() []string {
	return []string{"pass", "pwd", "secret", "token", "key", "auth", "cred", "pin", "cert", "salt", "private", "code", "seed", "sign", "hash", "phrase", "cookie", "session"}
}

func plainKeys() []string {
	return []string{
		"host", "hostname", "hosts", "server", "addr", "address", "endpoint", "domain", "region", "zone", "port", "env", "environment", "mode",
		"level", "driver", "dialect", "engine", "type", "kind", "format", "protocol", "scheme", "version", "timeout", "interval", "debug",
		"database", "dbname", "db", "schema", "path", "dir", "file", "bucket", "encoding", "locale", "timezone", "registry", "namespace",
		"image", "service", "cluster", "user", "username",
	}
}
