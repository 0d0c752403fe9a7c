package kubeletconf

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
)

// flags returns the settings of all command lines. If a flag with a list or a map is repeated, the values are added.
func (f *Files) flags() []setting {
	all, _ := f.parseFlags()
	return all
}

// parseFlags also returns the origins of words that are neither a flag nor the value of one.
func (f *Files) parseFlags() (all []setting, others []string) {
	words, _ := f.words() // Check returns the error.
	return f.table.parse(words)
}

func (t table) parse(words []argument) (all []setting, others []string) {
	at := map[string]int{}
	for i := 0; i < len(words); i++ {
		name, text, ok := cutFlag(words[i].word)
		if !ok {
			if filepath.Base(words[i].word) != "kubelet" && !strings.HasPrefix(words[i].origin, variableOrigin) {
				others = append(others, words[i].origin)
			}
			continue
		}
		row := t.flags[name]
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
	return all, others
}

// commandNotes returns what was not examined on command lines. Words without a flag may be secret.
func (f *Files) commandNotes() (notes []string) {
	if len(f.command) > 0 && !isK3s(f.command) && !startsKubelet(f.command) {
		notes = append(notes, f.unit+" does not start a kubelet itself: pass the command line of the kubelet's "+
			"process with --kubelet-args")
	}
	all, others := f.parseFlags()
	for _, s := range all {
		if s.row.namesFile() && !filepath.IsAbs(s.text) {
			notes = append(notes, s.origin+": the path after "+s.name+" is relative, so it was not examined")
		}
	}
	for _, origin := range slices.Compact(others) {
		notes = append(notes, origin+": a word that is no flag of a kubelet was not examined")
	}
	return notes
}

// variableOrigin begins the origins of flags in variables that no unit uses.
const variableOrigin = "the variable "

// needsValue reports whether the word after a flag can be its value.
func needsValue(row *Row) bool { return row != nil && row.Form != Boolean }

// cutFlag splits a flag such as --max-pods=10 or -v=2. A kubelet accepts --max_pods too (WordSepNormalizeFunc).
func cutFlag(word string) (name, value string, ok bool) {
	if rest, short := strings.CutPrefix(word, "-v"); short && (rest == "" || rest[0] == '=') {
		return "v", strings.TrimPrefix(rest, "="), true
	}
	word, ok = strings.CutPrefix(word, "--")
	name, value, _ = strings.Cut(word, "=")
	return strings.ReplaceAll(name, "_", "-"), value, ok && name != ""
}

// words returns the words of all command lines. Without a unit, every variable can have flags.
func (f *Files) words() ([]argument, error) {
	words, err := expand(f.command, f.variables)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: ExecStart: %w", f.unit, err)
	case len(words) > 0 && !isK3s(words):
		return append(argumentsOf(f.unit, words[1:]), f.arguments...), nil
	}
	k, _ := f.k3sSettings()
	all := k.arguments()
	if len(words) == 0 {
		for _, name := range slices.Sorted(maps.Keys(f.variables)) {
			words, err := Words(f.variables[name])
			if err != nil {
				return nil, fmt.Errorf("the variable %s: %w", name, err)
			}
			all = append(all, argumentsOf(variableOrigin+name, words)...)
		}
	}
	return append(all, f.arguments...), nil
}

// k3sSettings returns the settings of k3s and the file that shows that it is used.
func (f *Files) k3sSettings() (k3s, string) {
	if !isK3s(f.command) {
		if f.k3sFile == "" {
			return nil, ""
		}
		return f.k3s.withCommand(f.k3sFile, nil, f.variables), f.k3sFile
	}
	words, _ := expand(f.command, f.variables) // Check returns the error.
	return f.k3s.withCommand(f.unit, words, f.variables), f.unit
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
	_, err := f.words()
	return err
}
