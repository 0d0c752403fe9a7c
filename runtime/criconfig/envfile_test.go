package criconfig

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"
	envutil "k8s.io/kubernetes/pkg/kubelet/util/env"
)

// TestEnvFile: the cases on which readers of such files differ. What is wanted is what the
// kubelet's own reader says, which the table is held to.
func TestEnvFile(t *testing.T) {
	for name, c := range map[string]struct{ text, want, fault string }{
		"plain":                       {text: "K='v'\n", want: "v"},
		"indented":                    {text: " \t K='v'\n", want: "v"},
		"without a last newline":      {text: "K='v'", want: "v"},
		"comments and blank lines":    {text: "# a=b\n\n \t\n  # c\nK='v' # d\n", want: "v"},
		"several lines":               {text: "K='a\n b=\n#c'\n", want: "a\n b=\n#c"},
		"newlines of Windows":         {text: "K='a\r\nb'\r\n", want: "a\nb"},
		"the first line counts":       {text: "K='1'\nK='2'\n", want: "1"},
		"what comes after it is free": {text: "K='1'\nnonsense\n", want: "1"},
		"what comes before it is not": {text: "nonsense\nK='1'\n", fault: "line 1: KEY='value' is expected"},
		"a space before the quote":    {text: "K= 'x'\nK='y'\n"},
		"a tab before the quote":      {text: "K=\t'x'\n"},
		"of another key":              {text: "J= 'x'\nK='y'\n", want: "y"},
		"nothing in the quotes":       {text: "K=''\nK='y'\n"},
		"a space before =":            {text: "K ='x'\n", fault: "line 1: KEY='value' is expected, without spaces before ="},
		"words after the quote":       {text: "\nK='a'b\n", fault: "line 2: only a comment may come after the closing quote"},
		"no value":                    {text: "K=\n", fault: "line 1: the value must stand in single quotes"},
		"no quotes":                   {text: "J='a\nb'\nK=v\n", fault: "line 3: the value must stand in single quotes"},
		"no name":                     {text: "='x'\nK='v'\n", fault: "line 1: KEY='value' is expected"},
		"no end":                      {text: "\nK='a\nb\n", fault: "line 2: the closing quote is missing"},
		"the longest line":            {text: "K='" + strings.Repeat("x", 65531) + "'\n", want: strings.Repeat("x", 65531)},
		"a longer line":               {text: "J='" + strings.Repeat("x", 65533) + "'\nK='v'\n", fault: "line 1: it has more than 65535 bytes"},
		"a longer line in quotes":     {text: "J='\n" + strings.Repeat("x", 1<<17) + "'\nK='v'\n", fault: "line 2: it has more than 65535 bytes"},
		"no such key":                 {text: "J='v'\n"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := newEnvFile([]byte(c.text)).find("K")
			if got != c.want || (err != nil) != (c.fault != "") || (err != nil && !strings.Contains(err.Error(), c.fault)) {
				t.Errorf("%q %v, want %q %s", got, err, c.want, c.fault)
			}
			compareEnvFile(t, memoryFile(t), c.text)
		})
	}
}

// TestEnvFileIsTheKubelets tries every short file there is.
func TestEnvFileIsTheKubelets(t *testing.T) {
	file := memoryFile(t)
	parts := []string{"K", "J", "=", "'", " ", "\t", "\n", "#"}
	texts := []string{""}
	for range 4 {
		var longer []string
		for _, text := range texts {
			for _, part := range parts {
				longer = append(longer, text+part)
			}
		}
		for _, text := range longer {
			compareEnvFile(t, file, text)
			compareEnvFile(t, file, "K='"+text)
		}
		texts = longer
	}
}

// memoryFile is a file that no disk has: thousands are written in no time.
func memoryFile(t *testing.T) *os.File {
	t.Helper()
	fd, err := unix.MemfdCreate("env", unix.MFD_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	file := os.NewFile(uintptr(fd), fmt.Sprintf("/proc/self/fd/%d", fd))
	t.Cleanup(func() { _ = file.Close() })
	return file
}

// compareEnvFile holds a text to the kubelet's reading of it.
func compareEnvFile(t *testing.T, file *os.File, text string) {
	t.Helper()
	if err := file.Truncate(0); err != nil {
		t.Fatal(err)
	}
	if _, err := file.WriteAt([]byte(text), 0); err != nil {
		t.Fatal(err)
	}
	want, wantErr := envutil.ParseEnv(file.Name(), "K")
	got, err := newEnvFile([]byte(text)).find("K")
	if got != want || (err != nil) != (wantErr != nil) {
		t.Errorf("%.100q: %q %v, the kubelet says %q %v", text, got, err, want, wantErr)
	}
}

// TestFileValue: what an optional variable is spared.
func TestFileValue(t *testing.T) {
	const there, absent, broken = "there", "absent", "broken"
	in := &ContainerInput{Files: map[FileKey][]byte{
		{Volume: "v", Path: there}: []byte("K='v'\nE=''\n"), {Volume: "v", Path: broken}: []byte("K=v\n"),
	}}
	for _, c := range []struct {
		path, key string
		optional  bool
		want      string
		set       bool
		fault     string
	}{
		{path: there, key: "K", want: "v", set: true},
		{path: there, key: "E", fault: "file there in volume v has no key E"},
		{path: there, key: "E", optional: true},
		{path: absent, key: "K", fault: "file absent does not exist in volume v"},
		{path: absent, key: "K", optional: true},
		{path: broken, key: "K", optional: true, fault: "file broken in volume v: line 1:"},
	} {
		t.Run(fmt.Sprintf("%s %s %t", c.path, c.key, c.optional), func(t *testing.T) {
			got, set, err := fileValue(in, &v1.FileKeySelector{VolumeName: "v", Path: c.path, Key: c.key, Optional: &c.optional})
			if got != c.want || set != c.set || (err != nil) != (c.fault != "") || (err != nil && !strings.Contains(err.Error(), c.fault)) {
				t.Errorf("%q %t %v", got, set, err)
			}
		})
	}
}
