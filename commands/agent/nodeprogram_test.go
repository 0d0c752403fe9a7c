package agent

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestFindNode checks which program an agent with --kubeconfig becomes. An error names the file and what to do. A
// program that another user could change is never skipped for the next one.
func TestFindNode(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give files to another user")
	}
	const other = 65534
	dir := t.TempDir()
	at := func(parts ...string) string { return filepath.Join(append([]string{dir}, parts...)...) }
	program := func(name string, mode os.FileMode, owner int) string {
		path := at(name, "podctl-node")
		err := errors.Join(os.Mkdir(at(name), 0o755), os.WriteFile(path, nil, 0o600), os.Chmod(path, mode),
			os.Chown(path, owner, 0))
		if err != nil {
			t.Fatal(err)
		}
		return path
	}
	good, data := program("good", 0o755, 0), program("data", 0o644, 0)
	foreign, group := program("foreign", 0o755, other), program("group", 0o775, 0)
	all := program("all", 0o757, 0)
	below := program("below", 0o755, 0)
	open := program("open", 0o755, 0)
	err := errors.Join(os.Chown(at("below"), other, 0), os.Chmod(at("open"), 0o777),
		os.Symlink(good, at("link")), os.Lchown(at("link"), other, 0), os.Symlink(good, at("own link")))
	if err != nil {
		t.Fatal(err)
	}
	absent := at("absent", "podctl-node")
	for name, c := range map[string]struct {
		paths []string
		found string
		wants []string
	}{
		"installed":               {[]string{good, absent}, good, nil},
		"in a checkout":           {[]string{absent, good}, good, nil},
		"through a link":          {[]string{at("own link"), absent}, at("own link"), nil},
		"below a file":            {[]string{filepath.Join(good, "podctl-node"), good}, good, nil},
		"missing":                 {[]string{absent, at("b")}, "", []string{absent + " and no " + at("b"), "install podctl again"}},
		"not executable":          {[]string{data, good}, "", []string{data + " is not an executable file: install podctl again"}},
		"a directory":             {[]string{at("good"), good}, "", []string{at("good") + " is not an executable file"}},
		"of another user":         {[]string{foreign, good}, "", []string{foreign + " belongs to user 65534", "install podctl again as root"}},
		"writable by a group":     {[]string{group, good}, "", []string{group + " can be written by others", "chmod go-w " + group}},
		"writable by all":         {[]string{all, good}, "", []string{all + " can be written by others", "chmod go-w " + all}},
		"another user's folder":   {[]string{below, good}, "", []string{at("below") + " belongs to user 65534"}},
		"a folder open to all":    {[]string{open, good}, "", []string{at("open") + " can be written by others"}},
		"a link of another user":  {[]string{at("link"), good}, "", []string{"leads through the link link of user 65534"}},
		"missing before a danger": {[]string{absent, foreign}, "", []string{foreign + " belongs to user 65534"}},
	} {
		p, err := findNode(c.paths)
		if err == nil {
			if p.Path != c.found {
				t.Errorf("%s: found %s", name, p.Path)
			}
			_ = p.Close()
			continue
		}
		if c.found != "" {
			t.Errorf("%s: %v", name, err)
		}
		for _, want := range c.wants {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %s", name, err, want)
			}
		}
	}
}

// TestStarter checks that a program that another version has started refuses to run, and that a restart does not check
// the version of the first start.
func TestStarter(t *testing.T) {
	for _, c := range []struct {
		starter, version string
		refused          bool
	}{
		{"v1.2.0", "v1.2.0", false},
		{"v1.2.0", "v1.2.1", true},
		{"v1.2.0", "v0.1.0-dev+abcdef0", true},
		{"v0.1.0-dev+abcdef0", "v1.2.0", true},
		{"v0.1.0-dev+abcdef0", "v1.2.0-3-gabcdef1", false},
		{"", "v1.2.0", true},
		{"devel", "devel", false},
	} {
		t.Setenv(starterVar, c.starter)
		err := checkStarter(c.version)
		if (err != nil) != c.refused || err != nil && !strings.Contains(err.Error(), "has the version "+c.version) {
			t.Errorf("%q starts %q: %v", c.starter, c.version, err)
		}
		if err = checkStarter("another"); err != nil {
			t.Errorf("after a restart: %v", err)
		}
	}
}
