package kubeletconf

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// flags returns the settings of all command lines. If a flag with a list or a map is repeated, the values are added.
func (f *Files) flags() []setting {
	var all []setting
	at := map[string]int{}
	words := f.words()
	for i := 0; i < len(words); i++ {
		name, text, ok := cutFlag(words[i].word)
		if !ok {
			continue
		}
		row := f.table.flags[name]
		s := setting{row: row, name: "--" + name, text: text, origin: words[i].origin}
		if text == "" && !strings.Contains(words[i].word, "=") {
			if next := i + 1; needsValue(row) && next < len(words) && !strings.HasPrefix(words[next].word, "--") {
				s.text, i = words[next].word, next
			} else {
				s.text = "true"
			}
		}
		if row != nil {
			s.name = row.name()
			s.text, s.problem = row.Form.parse(s.text)
		}
		k, repeated := at[s.name]
		switch {
		case repeated && row != nil && row.Form >= List:
			all[k].text += "," + s.text
		case repeated:
			all[k] = s
		default:
			at[s.name] = len(all)
			all = append(all, s)
		}
	}
	return all
}

// needsValue reports whether the word after a flag can be its value.
func needsValue(row *Row) bool { return row != nil && row.Form != Boolean }

// cutFlag splits a flag such as --max-pods=10 or -v=2.
func cutFlag(word string) (name, value string, ok bool) {
	if rest, short := strings.CutPrefix(word, "-v"); short && (rest == "" || rest[0] == '=') {
		return "v", strings.TrimPrefix(rest, "="), true
	}
	word, ok = strings.CutPrefix(word, "--")
	name, value, _ = strings.Cut(word, "=")
	return name, value, ok && name != ""
}

// words returns the words of all command lines. Without a unit, every variable can have flags.
func (f *Files) words() []argument {
	all, _ := f.allWords() // Check returns the error.
	return all
}

func (f *Files) allWords() ([]argument, error) {
	all := slices.Clone(f.arguments)
	if len(f.command) > 0 {
		words, err := expand(f.command, f.variables)
		if err != nil {
			return nil, fmt.Errorf("%s: ExecStart: %w", f.unit, err)
		}
		return append(all, argumentsOf(f.unit, words)...), nil
	}
	for _, name := range slices.Sorted(maps.Keys(f.variables)) {
		words, err := Words(f.variables[name])
		if err != nil {
			return nil, fmt.Errorf("the variable %s: %w", name, err)
		}
		all = append(all, argumentsOf("the variable "+name, words)...)
	}
	return all, nil
}

// argumentsOf returns words with their origin.
func argumentsOf(origin string, words []string) (all []argument) {
	for _, word := range words {
		all = append(all, argument{word, origin})
	}
	return all
}

// Check returns why the command lines of units and variables cannot be read.
func (f *Files) Check() error {
	_, err := f.allWords()
	return err
}
