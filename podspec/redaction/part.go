package redaction

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"sigs.k8s.io/yaml"
)

// maxNesting is how deep values are taken apart: a document in a string of a document.
const maxNesting = 4

// part is a text that is secret by itself.
type part struct {
	text string
	// word: it is an ordinary one, which is hidden only where it stands alone.
	word bool
}

// parts are what is secret in one value.
type parts struct {
	leaves []part
	// structured: the value is a document, whose keys, hosts and marks are no secret.
	structured bool
}

func partsOf(value string) *parts {
	p := &parts{}
	p.structured = p.add("", value, maxNesting)
	return p
}

// add takes a text apart that stands behind a key; empty for none. It reports whether the
// text is a document.
func (p *parts) add(key, text string, nesting int) bool {
	text = strings.TrimSpace(text)
	if len(text) < shortest {
		return false
	}
	if nesting == 0 {
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
	if len(text) >= shortest && !isOrdinary(key, text) {
		p.leaves = append(p.leaves, part{text: text, word: key != "" && len(text) < shortestLine})
	}
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
	var documents []any
	for one := range strings.SplitSeq(text, "\n---") {
		var document any
		if yaml.Unmarshal([]byte(one), &document) != nil {
			return false
		}
		switch document.(type) {
		case map[string]any, []any:
			documents = append(documents, document)
		case nil:
		default:
			return false
		}
	}
	if len(documents) == 0 {
		return false
	}
	p.walk(key, documents, nesting)
	// A number or a date is not what it was once it is decoded.
	for line := range strings.Lines(text) {
		if name, value, ok := setting(line); ok {
			p.leaf(name, value)
		}
	}
	return true
}

// walk adds the leaves of a document. Those of docker's credentials are decoded.
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
		if strings.EqualFold(key, "auth") {
			p.docker(v)
		}
	case nil, bool:
	default:
		p.leaf(key, fmt.Sprint(v))
	}
}

// docker decodes user:password, as .dockerconfigjson has it.
func (p *parts) docker(auth string) {
	decoded, err := base64.StdEncoding.DecodeString(auth)
	if err != nil {
		decoded, err = base64.RawStdEncoding.DecodeString(auth)
	}
	if err == nil && utf8.Valid(decoded) {
		p.userInfo(strings.TrimRight(string(decoded), "\x00"))
	}
}

// userInfo adds user:password, and the password.
func (p *parts) userInfo(text string) {
	_, password, found := strings.Cut(text, ":")
	if !found {
		return
	}
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
			p.add(key, value, nesting-1)
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
		p.add(one.key, one.value, nesting-1)
		if strings.EqualFold(one.key, "auth") || strings.HasSuffix(one.key, "_auth") {
			p.docker(one.value)
		}
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
// a setting or like user:password@host in it.
func (p *parts) plain(key, text string, nesting int) {
	p.leaf(key, text)
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if len(line) >= shortestLine && line != text {
			p.leaf("", line)
		}
		if name, value, ok := setting(line); ok {
			p.add(name, value, nesting-1)
		}
		p.fields(line, " ;,&", nesting)
		if at := strings.LastIndex(line, "@"); at > 0 {
			p.userInfo(line[:at])
		}
	}
}

// isOrdinary reports whether a value is no secret although it is in one: a switch, a small
// number, or a plain word, host or path behind a key that says so. Texts are full of them.
func isOrdinary(key, text string) bool {
	lower := strings.ToLower(text)
	name := strings.Map(lettersOnly, strings.ToLower(key))
	switch {
	case key == "":
		return false
	case slices.ContainsFunc(secretKeys(), func(word string) bool { return strings.Contains(name, word) }):
		return false
	case slices.Contains([]string{"true", "false", "null", "none", "auto", "default", "enabled", "disabled", "localhost"}, lower):
		return true
	case len(text) <= 5 && strings.Trim(text, "0123456789") == "":
		return true
	}
	return slices.ContainsFunc(plainKeys(), func(word string) bool { return strings.HasSuffix(name, word) }) &&
		len(text) <= longestKey && strings.Trim(text, "abcdefghijklmnopqrstuvwxyz0123456789.-_/:") == ""
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
