package safefs

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// AbsolutePath is a PATH without its relative and empty entries, which mean the directory
// that the caller happens to be in.
func AbsolutePath(path string) string {
	relative := func(dir string) bool { return !filepath.IsAbs(dir) }
	return strings.Join(slices.DeleteFunc(filepath.SplitList(path), relative), string(filepath.ListSeparator))
}

// LookPath finds a program in the absolute directories of a PATH. It returns exec.ErrNotFound
// where there is none, and an *UntrustedError where another user decides what the program
// does. A name with a slash is refused.
func LookPath(program, path string) (string, error) {
	if program == "" || strings.Contains(program, "/") {
		return "", fmt.Errorf("%q is a path and not the name of a program", program)
	}
	for _, dir := range filepath.SplitList(AbsolutePath(path)) {
		file := filepath.Join(dir, program)
		info, err := os.Stat(file)
		if err != nil || !info.Mode().IsRegular() || info.Mode().Perm()&0o111 == 0 {
			continue
		}
		return file, checkProgram(file)
	}
	return "", fmt.Errorf("%s: %w", program, exec.ErrNotFound)
}

// checkProgram refuses a program that another user or a foreign group could have put there: the file, and each directory on the way to
// where it was found and to where it lies. Such a program cannot be exchanged between the check and its start.
func checkProgram(file string) error {
	target, err := filepath.EvalSymlinks(file)
	if err != nil {
		return err
	}
	for _, found := range []string{file, target} {
		if err = CheckParents(found); err != nil {
			return err
		}
	}
	p, err := resolve(file)
	if err != nil {
		return err
	}
	defer p.close()
	return p.check(file, writableByOthers)
}

// environment is what every program that podctl starts is given of podctl's own
// environment, beside PATH and TMPDIR.
func environment() []string {
	return []string{
		"HOME", "SSL_CERT_FILE", "SSL_CERT_DIR",
		"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "no_proxy", "all_proxy",
	}
}

// Environ is the environment of a program that podctl starts: HOME, the variables of proxies
// and certificates, the absolute directories of PATH, TMPDIR if it is a directory to be
// trusted, and the variables that are named. A name that ends in an underscore stands for
// all that begin with it.
func Environ(names ...string) []string {
	names = append(environment(), names...)
	env := []string{"PATH=" + AbsolutePath(os.Getenv("PATH"))}
	if dir := os.Getenv("TMPDIR"); isTempDir(dir) {
		env = append(env, "TMPDIR="+dir)
	}
	for _, variable := range os.Environ() {
		name, _, _ := strings.Cut(variable, "=")
		if slices.ContainsFunc(names, func(n string) bool { return n == name || (strings.HasSuffix(n, "_") && strings.HasPrefix(name, n)) }) {
			env = append(env, variable)
		}
	}
	return env
}

// isTempDir reports whether temporary files can be made in a directory: others cannot
// exchange them there.
func isTempDir(dir string) bool {
	if !filepath.IsAbs(dir) {
		return false
	}
	p, err := resolve(dir)
	if err != nil {
		return false
	}
	defer p.close()
	sticky := p.stat.Mode&unix.S_ISVTX != 0
	return p.kind() == unix.S_IFDIR && p.checkOwner(dir) == nil && (sticky || p.checkMode(dir, writableByOthers) == nil)
}
