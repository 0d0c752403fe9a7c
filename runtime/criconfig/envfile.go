package criconfig

import (
	"bufio"
	"bytes"
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/podctl/podctl/podspec"
)

// fileValue reads one key of an environment file that an init container wrote
// into an emptyDir; false when it is optional and absent.
func fileValue(in *ContainerInput, ref *v1.FileKeySelector) (string, bool, error) {
	optional := ptr.Deref(ref.Optional, false)
	text, ok := in.Files[FileKey{Volume: ref.VolumeName, Path: ref.Path}]
	if !ok {
		if optional {
			return "", false, nil
		}
		return "", false, fmt.Errorf("file %s does not exist in volume %s", ref.Path, ref.VolumeName)
	}
	value, err := newEnvFile(text).find(ref.Key)
	if err != nil {
		return "", false, fmt.Errorf("file %s in volume %s: %w", ref.Path, ref.VolumeName, err)
	}
	if value == "" && !optional {
		return "", false, fmt.Errorf("file %s in volume %s has no key %s", ref.Path, ref.VolumeName, ref.Key)
	}
	return value, value != "", nil
}

// StandIns are the files that the environment of a container refers to, with one value for all keys.
func StandIns(ref podspec.ContainerRef, value string) map[FileKey][]byte {
	files := map[FileKey][]byte{}
	for i := range ref.Env {
		if from := ref.Env[i].ValueFrom; from != nil && from.FileKeyRef != nil {
			key := FileKey{Volume: from.FileKeyRef.VolumeName, Path: from.FileKeyRef.Path}
			files[key] = append(files[key], from.FileKeyRef.Key+"='"+value+"'\n"...)
		}
	}
	return files
}

// envFile is read line by line. Its lines have the form KEY='value': the quotes are part
// of the form, a value may span lines, and nothing in it is interpreted. The kubelet's own
// parser (ParseEnv) opens a path; here the text has been read, without following links out
// of the volume, and a test holds the two to the same answers.
type envFile struct {
	lines *bufio.Scanner
	line  int
}

func newEnvFile(text []byte) *envFile {
	return &envFile{lines: bufio.NewScanner(bytes.NewReader(text))}
}

// next goes to the next line; false when there is none, with an error when it is too long.
func (f *envFile) next() (bool, error) {
	f.line++
	if f.lines.Scan() {
		return true, nil
	}
	if f.lines.Err() != nil {
		return false, fmt.Errorf("line %d: it has more than %d bytes", f.line, bufio.MaxScanTokenSize-1)
	}
	return false, nil
}

// find is the value of a key, empty when the key is not there. The first line that has the
// key decides, and what comes after it is not read.
func (f *envFile) find(key string) (string, error) {
	for {
		more, err := f.next()
		if err != nil || !more {
			return "", err
		}
		name, value, err := f.entry()
		if err != nil || name == key {
			return value, err
		}
	}
}

// entry is what a line assigns; a comment and a blank line assign nothing.
func (f *envFile) entry() (name, value string, err error) {
	line := strings.TrimLeft(f.lines.Text(), " \t")
	if line == "" || line[0] == '#' {
		return "", "", nil
	}
	name, rest, found := strings.Cut(line, "=")
	if !found || name == "" || name != strings.TrimRight(name, " \t") {
		return "", "", fmt.Errorf("line %d: KEY='value' is expected, without spaces before =", f.line)
	}
	switch {
	case strings.HasPrefix(rest, " "), strings.HasPrefix(rest, "\t"):
		// As a shell reads it: an assignment of nothing, and then a word.
		return name, "", nil
	case !strings.HasPrefix(rest, "'"):
		return "", "", fmt.Errorf("line %d: the value must stand in single quotes", f.line)
	}
	value, err = f.quoted(rest[1:])
	return name, value, err
}

// quoted reads on to the closing quote, after which a comment alone may come.
func (f *envFile) quoted(rest string) (string, error) {
	begun := f.line
	var value strings.Builder
	for {
		part, after, closed := strings.Cut(rest, "'")
		value.WriteString(part)
		if after = strings.TrimLeft(after, " \t"); after != "" && after[0] != '#' {
			return "", fmt.Errorf("line %d: only a comment may come after the closing quote", f.line)
		}
		if closed {
			return value.String(), nil
		}
		value.WriteByte('\n')
		if more, err := f.next(); err != nil {
			return "", err
		} else if !more {
			return "", fmt.Errorf("line %d: the closing quote is missing", begun)
		}
		rest = f.lines.Text()
	}
}
