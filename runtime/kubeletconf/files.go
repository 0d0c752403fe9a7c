package kubeletconf

import (
	"bytes"
	"encoding/json"
	"fmt"
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
	// distribution are the defaults of a distribution of Kubernetes.
	distribution []Row
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
func NewFiles() *Files { return &Files{table: newTable(), variables: map[string]string{}} }

// Add adds a file. Its text shows what it is: a KubeletConfiguration, the configuration of k3s, a unit of systemd or a
// file of variables.
func (f *Files) Add(name string, text []byte) error {
	if len(text) > MaxBytes {
		return fmt.Errorf("%s is larger than %d bytes", name, MaxBytes)
	}
	variables, areVariables := variablesOf(text)
	switch {
	case isUnit(text):
		return f.addUnit(name, text)
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
	for _, s := range f.flags() {
		if s.row.namesFile() && filepath.IsAbs(s.text) {
			names = append(names, s.text)
		}
	}
	return names
}

// isUnit reports whether a text has the sections of a unit of systemd.
func isUnit(text []byte) bool {
	for line := range bytes.Lines(text) {
		switch line = bytes.TrimSpace(line); {
		case len(line) == 0 || line[0] == '#' || line[0] == ';':
		default:
			return line[0] == '[' && bytes.HasSuffix(line, []byte("]")) && !bytes.ContainsAny(line, `",:`)
		}
	}
	return false
}

// assignment sets a variable to a value, which may be in quotes.
type assignment struct{ name, value string }

// variablesOf returns the variables of a file such as kubeadm-flags.env. It reports whether all lines of a text have
// the form NAME=VALUE.
func variablesOf(text []byte) (all []assignment, ok bool) {
	for line := range bytes.Lines(text) {
		line = bytes.TrimSpace(line)
		if len(line) == 0 || line[0] == '#' {
			continue
		}
		name, value, assigned := strings.Cut(strings.TrimPrefix(string(line), "export "), "=")
		if !assigned || name == "" || strings.ContainsAny(name, " \t:\"'{}[]-") {
			return nil, false
		}
		all = append(all, assignment{name, value})
	}
	return all, len(all) > 0
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
	joined := strings.ReplaceAll(strings.ReplaceAll(string(text), "\\\r\n", " "), "\\\n", " ")
	for line := range strings.Lines(joined) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		key, value = strings.TrimSpace(key), strings.TrimSpace(value)
		if err := f.addDirective(name, key, value); err != nil {
			return err
		}
	}
	return nil
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
		// An empty line removes the earlier ones.
		f.command, f.unit = words, name
	case key == "Environment":
		for _, word := range words {
			if variable, text, assigned := strings.Cut(word, "="); assigned {
				f.variables[variable] = text
			}
		}
	case len(words) > 0:
		if path := strings.TrimPrefix(words[0], "-"); filepath.IsAbs(path) {
			f.variableFiles = append(f.variableFiles, path)
		}
	}
	return nil
}
