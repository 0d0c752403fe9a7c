package safefs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// AbsolutePath returns a PATH without relative and empty entries, which depend on the working directory.
func AbsolutePath(path string) string {
	relative := func(dir string) bool { return !filepath.IsAbs(dir) }
	return strings.Join(slices.DeleteFunc(filepath.SplitList(path), relative), string(filepath.ListSeparator))
}

// Program is a checked program: another user or a foreign group could neither have put it there nor replace it.
type Program struct {
	// Path is where the program was found.
	Path string
	dir  *Dir
	// script is set for a program that an interpreter reads.
	script bool
}

// Close frees the program. It does not affect a started command.
func (p *Program) Close() error { return p.dir.Close() }

// Command runs the program from the checked directory, independent of its path. It passes no descriptor on, because
// containers must not get one of a host directory from containerd. A script is run by its path, because its interpreter
// opens it again. No other user can change that path.
func (p *Program) Command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, p.Path, args...) // it was checked
	cmd.Path = p.checkedPath()
	return cmd
}

// Exec replaces this process with the program, as Command runs it. args begin with its name. Exec returns only if it
// fails.
func (p *Program) Exec(args, env []string) error { return unix.Exec(p.checkedPath(), args, env) }

// checkedPath returns a path that leads to the checked program in this process.
func (p *Program) checkedPath() string {
	if p.script {
		return p.Path
	}
	return filepath.Join(procPath(p.dir.fd()), filepath.Base(p.Path))
}

// LookPath finds a program in the absolute directories of a PATH. It returns exec.ErrNotFound if there is none, and an
// *UntrustedError if another user can change the program. It refuses a name with a slash. The caller closes the
// program.
func LookPath(program, path string) (*Program, error) {
	if program == "" || strings.Contains(program, "/") {
		return nil, fmt.Errorf("%q is a path and not the name of a program", program)
	}
	for _, dir := range filepath.SplitList(AbsolutePath(path)) {
		found, err := OpenProgram(filepath.Join(dir, program))
		if err == nil || !errors.Is(err, exec.ErrNotFound) {
			return found, err
		}
	}
	return nil, fmt.Errorf("%s: %w", program, exec.ErrNotFound)
}

// OpenProgram opens the program at an absolute path. It returns exec.ErrNotFound if there is no executable file, and an
// *UntrustedError like LookPath. It checks the file, and each directory and link on the way to it. The caller closes
// the program.
func OpenProgram(file string) (*Program, error) {
	if !filepath.IsAbs(file) {
		return nil, fmt.Errorf("the path %q is not absolute", file)
	}
	info, err := os.Stat(file)
	if err != nil || !info.Mode().IsRegular() || info.Mode().Perm()&0o111 == 0 {
		return nil, fmt.Errorf("%s: %w", file, exec.ErrNotFound)
	}
	rules := policy{follow: followOurs, proc: true, pass: (*place).checkParent}
	at, err := walk(filepath.Dir(file), rules)
	if err != nil {
		return nil, trusting(file, err)
	}
	dir, err := at.dir()
	if err != nil {
		return nil, err
	}
	script, err := dir.checkProgram(filepath.Base(file), file, rules)
	if err != nil {
		return nil, errors.Join(err, dir.Close())
	}
	return &Program{Path: file, dir: dir, script: script}, nil
}

// checkProgram refuses a program in the directory that other users can change, and reports whether it is a script.
// rules decides which links are followed.
func (d *Dir) checkProgram(name, path string, rules policy) (script bool, err error) {
	at, err := look(d.fd(), d.Path(), ".", 0)
	if err != nil {
		return false, err
	}
	p, err := walkFrom(at, name, rules)
	if err != nil {
		return false, trusting(path, err)
	}
	defer p.close()
	if p.kind() != unix.S_IFREG {
		return false, fmt.Errorf("%s: %w", path, exec.ErrNotFound)
	}
	return p.isScript(), p.check(path, writableByOthers)
}

// isScript reports whether an interpreter reads the program, which must then be readable.
func (p *place) isScript() bool {
	f, err := p.open(p.path, unix.O_RDONLY)
	if err != nil {
		return false
	}
	defer f.Close() //nolint:errcheck // Nothing was written.
	begin := make([]byte, len(scriptBegin))
	_, err = io.ReadFull(f, begin)
	return err == nil && string(begin) == scriptBegin
}

const scriptBegin = "#!"

// environment lists the variables of podctl's environment that every started program gets, besides PATH and TMPDIR.
func environment() []string {
	return []string{
		"HOME", "SSL_CERT_FILE", "SSL_CERT_DIR",
		"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "no_proxy", "all_proxy",
	}
}

// Environ returns the environment for a program that podctl starts. It has HOME, the variables for proxies and
// certificates, the absolute directories of PATH, TMPDIR if that is a trusted directory, and the named variables. A
// name that ends in an underscore is a prefix.
func Environ(names ...string) []string {
	names = append(environment(), names...)
	env := []string{"PATH=" + AbsolutePath(os.Getenv("PATH"))}
	if dir := os.Getenv("TMPDIR"); isTempDir(dir) {
		env = append(env, "TMPDIR="+dir)
	}
	for _, variable := range os.Environ() {
		name, _, _ := strings.Cut(variable, "=")
		matches := func(pattern string) bool {
			return pattern == name || (strings.HasSuffix(pattern, "_") && strings.HasPrefix(name, pattern))
		}
		if slices.ContainsFunc(names, matches) {
			env = append(env, variable)
		}
	}
	return env
}

// isTempDir reports whether a directory is safe for temporary files: other users cannot replace them there.
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
