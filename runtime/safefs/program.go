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

// AbsolutePath is a PATH without its relative and empty entries, which mean the directory
// that the caller happens to be in.
func AbsolutePath(path string) string {
	relative := func(dir string) bool { return !filepath.IsAbs(dir) }
	return strings.Join(slices.DeleteFunc(filepath.SplitList(path), relative), string(filepath.ListSeparator))
}

// Program is a program that was checked: another user or a foreign group could neither have put it there nor exchange it.
type Program struct {
	// Path is where the program was found.
	Path string
	dir  *Dir
	// script is set for a program that an interpreter reads.
	script bool
}

// Close frees the program. A command that was started is not affected.
func (p *Program) Close() error { return p.dir.Close() }

// Command runs the program from the directory that was checked, whatever its path leads to by now, and hands no descriptor on: containers
// must not get one of a directory of the machine from containerd. A script is run by its path, because its interpreter opens it again;
// nobody else can change that path.
func (p *Program) Command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, p.Path, args...) //nolint:gosec // it was checked
	if !p.script {
		cmd.Path = filepath.Join(procPath(p.dir.fd()), filepath.Base(p.Path))
	}
	return cmd
}

// LookPath finds a program in the absolute directories of a PATH. It returns exec.ErrNotFound
// where there is none, and an *UntrustedError where another user decides what the program
// does. A name with a slash is refused. The caller closes the program.
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

// OpenProgram opens the program at an absolute path. It returns exec.ErrNotFound if nothing that can be executed is there, and an
// *UntrustedError as LookPath does: the file, and each directory and link on the way to it, is checked. The caller closes the program.
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

// checkProgram refuses a program in the directory that others can change, and reports whether it is a script. A link is followed by the
// rules.
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

// isScript reports whether a program is read by an interpreter, for which it has to be readable.
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
