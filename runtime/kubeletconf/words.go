package kubeletconf

import (
	"errors"
	"fmt"
	"strings"
)

// wordsMax limits the words of one command line. A kubelet has about 150 flags.
const wordsMax = 2000

// Words splits a command line as a shell and systemd do, with quotes and backslashes. Variables stay as they are.
func Words(line string) ([]string, error) {
	var words []string
	var word strings.Builder
	var quote rune
	open, escaped := false, false
	end := func() {
		if open {
			words = append(words, word.String())
			word.Reset()
			open = false
		}
	}
	for _, r := range line {
		switch {
		case escaped:
			word.WriteRune(r)
			escaped = false
		case r == '\\' && quote != '\'':
			escaped, open = true, true
		case quote != 0 && r == quote:
			quote = 0
		case quote == 0 && (r == '"' || r == '\''):
			quote, open = r, true
		case quote == 0 && strings.ContainsRune(" \t\r\n", r):
			end()
		default:
			word.WriteRune(r)
			open = true
		}
		if len(words) > wordsMax {
			return nil, fmt.Errorf("it has more than %d words", wordsMax)
		}
	}
	if quote != 0 || escaped {
		return nil, errors.New("a quote or a backslash at the end is not closed")
	}
	end()
	return words, nil
}

// expand replaces the variables of a command line of a unit. A variable that is a word of its own becomes several
// words, as in systemd. A variable that is not set becomes nothing.
func expand(words []string, variables map[string]string) (all []string, err error) {
	for _, word := range words {
		name, isVariable := strings.CutPrefix(word, "$")
		if !isVariable || strings.HasPrefix(name, "{") || strings.ContainsAny(name, "$/=-") {
			all = append(all, replaceVariables(word, variables))
			continue
		}
		more, err := Words(variables[name])
		if err != nil {
			return nil, fmt.Errorf("the variable %s: %w", name, err)
		}
		if all = append(all, more...); len(all) > wordsMax {
			return nil, fmt.Errorf("it has more than %d words", wordsMax)
		}
	}
	return all, nil
}

// replaceVariables replaces ${NAME}. Values are not expanded again.
func replaceVariables(word string, variables map[string]string) string {
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(word, "${")
		name, after, closed := strings.Cut(rest, "}")
		if !found || !closed {
			b.WriteString(word)
			return b.String()
		}
		b.WriteString(before + variables[name])
		word = after
	}
}
