package kubeletconf

import (
	"bytes"
	"encoding/json"
	"fmt"
	"iter"
	"path/filepath"
	"slices"
	"strings"

	"github.com/podctl/podctl/podspec/document"
	"github.com/podctl/podctl/podspec/input"
)

// MaxBytes limits the size of one file.
const MaxBytes = 1 << 20

// The type of a kubelet's configuration.
const (
	apiVersion = "kubelet.config.k8s.io/v1beta1"
	kind       = "KubeletConfiguration"
)

// Files are the settings in a kubelet's files.
type Files struct {
	table table
	// documents are the configurations in their order. Later ones take precedence.
	documents []configuration
	// command is the command line of the kubelet in a unit, and unit the file that has it.
	command []string
	unit    string
	// variables are those of units and of files of variables. variableFiles are the files of variables that units name.
	variables     map[string]string
	variableFiles []string
	// arguments are flags that are not part of a unit, with their origins.
	arguments []argument
	// k3s are the settings in configurations of k3s, and k3sFile the last of these files.
	k3s     k3s
	k3sFile string
	// Notes lists what was not examined.
	Notes []string
}

// configuration is one KubeletConfiguration.
type configuration struct {
	file string
	tree map[string]any
}

// argument is one word of a command line, and the file that it comes from.
type argument struct{ word, origin string }

// NewFiles returns the settings of no files.
func NewFiles() *Files {
	return &Files{table: newTable(), variables: map[string]string{}, k3s: k3s{}}
}

// Add adds a file. Its text shows what it is: a KubeletConfiguration, the configuration of k3s, a unit of systemd, or a
// file of variables or flags.
func (f *Files) Add(name string, text []byte) error {
	if len(text) > MaxBytes {
		return fmt.Errorf("%s is larger than %d bytes", name, MaxBytes)
	}
	variables, areVariables := variablesOf(text)
	switch {
	case isUnit(text):
		return f.addUnit(name, text)
	case areFlags(text):
		return f.addFlags(name, text)
	case areVariables:
		return f.addVariables(name, variables)
	case document.IsEmpty(text):
		return nil
	default:
		return f.addDocuments(name, text)
	}
}

// AddArguments adds flags of a command line.
func (f *Files) AddArguments(origin string, words []string) {
	f.arguments = append(f.arguments, argumentsOf(origin, words)...)
}

// addDocuments adds the documents of a YAML file.
func (f *Files) addDocuments(name string, text []byte) error {
	docs, problems := document.Split(input.Source{Name: name, Text: text})
	if len(problems) > 0 {
		return fmt.Errorf("%s", problems[0])
	}
	for _, doc := range docs {
		if problems = doc.Parse(); len(problems) > 0 {
			return fmt.Errorf("%s", problems[0])
		}
		var tree map[string]any
		decoder := json.NewDecoder(bytes.NewReader(doc.JSON))
		decoder.UseNumber()
		if err := decoder.Decode(&tree); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if err := f.addTree(name, tree); err != nil {
			return err
		}
	}
	return nil
}

func (f *Files) addTree(name string, tree map[string]any) error {
	itsVersion, itsKind := tree["apiVersion"], tree["kind"]
	switch {
	case itsVersion == apiVersion && itsKind == kind:
		delete(tree, "apiVersion")
		delete(tree, "kind")
		f.documents = append(f.documents, configuration{name, tree})
		return nil
	case itsKind == nil && itsVersion == nil:
		return f.addK3s(name, tree)
	case itsKind == kind:
		return fmt.Errorf("%s: the version of KubeletConfiguration must be %s", name, apiVersion)
	}
	f.Notes = append(f.Notes, fmt.Sprintf("%s: %v %v is no configuration of a kubelet, and was not examined",
		name, itsVersion, itsKind))
	return nil
}

// Named returns the files and directories that the flags and units name and that were not added: the configuration, its
// drop-ins, and files of variables.
func (f *Files) Named() []string {
	names := slices.Clone(f.variableFiles)
	k, _ := f.k3sSettings()
	if config, _ := k.value("config"); filepath.IsAbs(config.word) {
		names = append(names, config.word, config.word+".d")
	}
	// Drop-ins take precedence over the configuration.
	for _, flag := range []string{configFlag, configDirFlag} {
		for _, s := range f.flags() {
			if s.row != nil && s.row.Flag == flag && filepath.IsAbs(s.text) {
				names = append(names, s.text)
			}
		}
	}
	return names
}

// Unused reports whether the command line in a unit names no file at its usual path, or another one in its place.
func (f *Files) Unused(path string) bool {
	k, file := f.k3sSettings()
	if strings.HasPrefix(path, "/etc/rancher/") {
		config, isSet := k.value("config")
		return isSet && productOf(path) == productOf(file) && strings.TrimSuffix(path, ".d") != config.word
	}
	return strings.HasPrefix(path, "/var/lib/kubelet/config") && (file != "" || startsKubelet(f.command))
}

// startsKubelet reports whether a command of a unit starts a kubelet itself.
func startsKubelet(command []string) bool {
	return len(command) > 0 && filepath.Base(command[0]) == "kubelet"
}

// Empty reports whether no file has settings of a kubelet.
func (f *Files) Empty() bool {
	return len(f.documents)+len(f.command)+len(f.variables)+len(f.arguments) == 0 && f.k3sFile == ""
}

// areFlags reports whether all lines of a text are flags, as in the files of microk8s.
func areFlags(text []byte) bool {
	found := false
	for line := range contentOf(string(text), "#") {
		// A line of only hyphens begins a YAML document.
		if found = strings.HasPrefix(line, "--") && !strings.HasSuffix(line, "-"); !found {
			return false
		}
	}
	return found
}

// addFlags adds a file of flags. In a snap, they have the variables of snapd. A copy of such a file is of microk8s.
func (f *Files) addFlags(name string, text []byte) error {
	variables := map[string]string{}
	snap, found := strings.CutPrefix(name, "/var/snap/")
	if !found {
		snap = "microk8s"
	}
	if found || bytes.Contains(text, []byte("${SNAP_")) {
		snap, _, _ = strings.Cut(snap, "/")
		variables["SNAP_DATA"] = "/var/snap/" + snap + "/current"
		variables["SNAP_COMMON"] = "/var/snap/" + snap + "/common"
	}
	for line := range contentOf(string(text), "#") {
		words, err := Words(line)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		for _, word := range words {
			if len(variables) > 0 {
				word = replaceVariables(word, variables)
			}
			f.AddArguments(name, []string{word})
		}
	}
	return nil
}

// isUnit reports whether a text has the sections of a unit of systemd.
func isUnit(text []byte) bool {
	for line := range contentOf(string(text), "#;") {
		return line[0] == '[' && strings.HasSuffix(line, "]") && !strings.ContainsAny(line, `",:`)
	}
	return false
}

// contentOf returns the lines of a text without the spaces around them. It leaves out empty lines and comments, which
// begin with one of the signs.
func contentOf(text, signs string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for line := range strings.Lines(text) {
			line = strings.TrimSpace(line)
			if line != "" && !strings.ContainsRune(signs, rune(line[0])) && !yield(line) {
				return
			}
		}
	}
}

// assignment sets a variable to a value, which may be in quotes.
type assignment struct{ name, value string }

// variablesOf returns the variables of a file such as kubeadm-flags.env. It reports whether all lines of a text have
// the form NAME=VALUE.
func variablesOf(text []byte) (all []assignment, ok bool) {
	for line := range contentOf(joinLines(text, ""), "#;") {
		name, value, assigned := strings.Cut(strings.TrimPrefix(line, "export "), "=")
		if !assigned || name == "" || strings.ContainsAny(name, " \t:\"'{}[]-") {
			return nil, false
		}
		all = append(all, assignment{name, value})
	}
	return all, len(all) > 0
}

// joinLines joins lines that a backslash continues.
func joinLines(text []byte, sign string) string {
	return strings.NewReplacer("\\\r\n", sign, "\\\n", sign).Replace(string(text))
}

// addVariables adds the variables of a file.
func (f *Files) addVariables(file string, all []assignment) error {
	for _, v := range all {
		words, err := Words(v.value)
		if err != nil {
			return fmt.Errorf("%s: the variable %s: %w", file, v.name, err)
		}
		f.variables[v.name] = strings.Join(words, " ")
	}
	return nil
}

// addUnit adds a unit of systemd or one of its drop-ins.
func (f *Files) addUnit(name string, text []byte) error {
	for line := range strings.Lines(joinLines(withoutComments(text), " ")) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		key, value = strings.TrimSpace(key), strings.TrimSpace(value)
		if err := f.addDirective(name, key, value); err != nil {
			return err
		}
	}
	return nil
}

// withoutComments returns the lines of a unit that are no comments. A comment does not end a line that continues.
func withoutComments(text []byte) (kept []byte) {
	for line := range bytes.Lines(text) {
		if start := bytes.TrimSpace(line); len(start) == 0 || start[0] != '#' && start[0] != ';' {
			kept = append(kept, line...)
		}
	}
	return kept
}

func (f *Files) addDirective(name, key, value string) error {
	if key != "Environment" && key != "EnvironmentFile" && key != "ExecStart" {
		return nil
	}
	words, err := Words(value)
	if err != nil {
		return fmt.Errorf("%s: %s: %w", name, key, err)
	}
	switch {
	case key == "ExecStart":
		if len(f.command) > 0 && unitName(f.unit) != unitName(name) {
			f.Notes = append(f.Notes, fmt.Sprintf("%s was not examined, because %s starts a kubelet too", f.unit, name))
		}
		// An empty line removes the earlier ones.
		f.command, f.unit = words, name
	case key == "Environment":
		for _, word := range words {
			if variable, text, assigned := strings.Cut(word, "="); assigned {
				f.variables[variable] = text
			}
		}
	case len(words) > 0:
		path := strings.NewReplacer("%N", unitName(name), "%n", unitName(name)+".service").Replace(words[0])
		if path = strings.TrimPrefix(path, "-"); filepath.IsAbs(path) {
			f.variableFiles = append(f.variableFiles, path)
		}
	}
	return nil
}

// unitName returns the name of the unit that a file or a drop-in belongs to, without its type.
func unitName(file string) string {
	if dir := filepath.Base(filepath.Dir(file)); strings.HasSuffix(dir, ".service.d") {
		return strings.TrimSuffix(dir, ".service.d")
	}
	return strings.TrimSuffix(filepath.Base(file), ".service")
}
