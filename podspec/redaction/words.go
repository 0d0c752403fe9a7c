package redaction

import (
	"slices"
	"strings"
	"unicode"
)

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

// token adds a word unless it is an ordinary one.
func (p *parts) token(word string) {
	word = strings.Trim(word, "()[]{}.!?")
	if len(word) >= shortestToken && !isPlainWord(word, 4) {
		p.leaf("password", word)
	}
}

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
