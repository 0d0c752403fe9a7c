package redaction

import (
	"encoding/base64"
	"encoding/hex"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"
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

// shortestToken is the shortest word that is looked for although nothing says that it is a
// secret, in bytes.
const shortestToken = 6

// longestWord is the longest run of letters that is an ordinary word, in bytes, and
// longestNumber the longest run of digits that is an ordinary number.
const longestWord, longestNumber = 20, 5
