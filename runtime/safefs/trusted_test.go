package safefs

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// This uid is another user.
const foreignUID = 65534

func needsRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can give a file away")
	}
}

func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// tree is a directory with files and links of root and of another user. Its link of /proc is that of a thread, because
// the first thread of the process may have another working directory (withoutUmask).
func tree(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	must(t,
		os.MkdirAll(at("own/sub"), 0o755), os.Mkdir(at("his"), 0o755), os.WriteFile(at("own/file"), []byte("own"), 0o600),
		os.WriteFile(at("own/foreign"), nil, 0o600), os.Chown(at("own/foreign"), foreignUID, foreignUID),
		os.WriteFile(at("own/shared"), nil, 0o600), os.Chmod(at("own/shared"), 0o620),
		os.Symlink("file", at("own/link")), os.Symlink("sub/../link", at("own/chain")), os.Symlink("loop", at("own/loop")),
		os.Symlink(at("own/file"), at("his/link")), os.Symlink(at("own"), at("his/dir")), os.Symlink(at("his/link"), at("own/through")),
		os.Symlink("/proc/thread-self/cwd", at("own/proc")), unix.Mkfifo(at("own/pipe"), 0o600), unix.Mkfifo(at("his/pipe"), 0o666),
	)
	for _, name := range []string{"his", "his/link", "his/dir", "his/pipe"} {
		must(t, os.Lchown(at(name), foreignUID, foreignUID))
	}
	return dir
}

// TestOpenRefusesOtherUsersFiles checks that a file, and each link on the way to it, must belong to root or the current
// user.
func TestOpenRefusesOtherUsersFiles(t *testing.T) {
	needsRoot(t)
	dir := tree(t)
	t.Chdir(dir)
	for path, want := range map[string]string{
		dir + "/own/file":        "",
		"own/../own//./file":     "",
		dir + "/own/link":        "",
		dir + "/own/chain":       "",
		dir + "/his/../own/link": "",
		"own/proc/own/file":      "",
		dir + "/own/foreign":     "belongs to user 65534, and podctl runs as 0",
		dir + "/own/shared":      "can be written by others",
		dir + "/own/pipe":        "is not a regular file",
		dir + "/own/sub":         "is not a regular file",
		dir + "/his/link":        "leads through the link link of user 65534",
		dir + "/his/dir/file":    "leads through the link dir of user 65534",
		dir + "/own/through":     "leads through the link link of user 65534",
	} {
		f, err := OpenTrusted(path)
		untrusted := (*UntrustedError)(nil)
		if (err == nil) != (want == "") || (err != nil && (!errors.As(err, &untrusted) || !strings.Contains(err.Error(), want))) {
			t.Errorf("%s: %v", path, err)
		}
		if err != nil {
			continue
		}
		if text, err := io.ReadAll(f); string(text) != "own" || err != nil {
			t.Errorf("%s holds %q, %v", path, text, err)
		}
		must(t, f.Close())
	}
	for path, want := range map[string]error{"own/absent": fs.ErrNotExist, "own/file/x": unix.ENOTDIR, "own/loop": unix.ELOOP} {
		if _, err := OpenTrusted(path); !errors.Is(err, want) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// TestOpenWhileLinksAreSwapped exchanges another user's file with a link while it is opened. Root must never read the
// target of the link.
func TestOpenWhileLinksAreSwapped(t *testing.T) {
	needsRoot(t)
	dir := tree(t)
	file, link, spare := filepath.Join(dir, "his/file"), filepath.Join(dir, "his/link"), filepath.Join(dir, "his/spare")
	must(t, os.WriteFile(file, []byte("his"), 0o600), os.Chown(file, foreignUID, foreignUID))
	stop := make(chan struct{})
	swapped := make(chan error)
	go func() {
		for {
			select {
			case <-stop:
				swapped <- nil
				return
			default:
			}
			if err := errors.Join(os.Rename(file, spare), os.Rename(link, file), os.Rename(spare, link)); err != nil {
				swapped <- err
				return
			}
		}
	}()
	for range 5000 {
		if f, err := OpenTrusted(file); err == nil {
			t.Errorf("%s was opened", f.Name())
			break
		}
	}
	close(stop)
	must(t, <-swapped)
}

// TestCreateDoesNotFollowForeignLinks checks that a file is written where the caller asked, readable only for its
// owner, and never behind another user's link.
func TestCreateDoesNotFollowForeignLinks(t *testing.T) {
	needsRoot(t)
	dir := tree(t)
	t.Chdir(dir)
	must(t, os.Mkdir("tmp", 0o700), os.Chmod("tmp", 0o1777),
		os.Symlink(dir+"/victim", "tmp/dangling"), os.Lchown("tmp/dangling", foreignUID, foreignUID),
		os.WriteFile("tmp/old", []byte("his"), 0o600), os.Chmod("tmp/old", 0o666), os.Chown("tmp/old", foreignUID, foreignUID))
	for path, want := range map[string]string{
		"new":          "",
		"own/sub/new":  "",
		"own/file":     "",
		"own/link":     "",
		"tmp/old":      "",
		"his/new":      "",
		"tmp/dangling": "leads through the link dangling",
		"his/link":     "leads through the link link",
		"his/dir/new":  "leads through the link dir",
		"his/pipe":     "belongs to user 65534",
		"own/sub":      "is a directory",
		"own/sub/":     "is a directory",
		"absent/new":   "no such file",
	} {
		err := WriteFile(path, []byte("new"))
		if (err == nil) != (want == "") || (err != nil && !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v", path, err)
		}
		if err != nil {
			continue
		}
		info, err := os.Lstat(path)
		must(t, err)
		if text, err := os.ReadFile(path); string(text) != "new" || err != nil || info.Mode() != 0o600 {
			t.Errorf("%s holds %q with mode %v: %v", path, text, info.Mode(), err)
		}
	}
	if _, err := os.Lstat("victim"); err == nil {
		t.Error("the target of a link was created")
	}
	left, err := filepath.Glob("*/.*")
	if more, moreErr := filepath.Glob(".*"); len(left)+len(more) > 0 || errors.Join(err, moreErr) != nil {
		t.Errorf("%v %v are left", left, more)
	}
}

// TestCreateThatIsNotCommitted checks that the previous file stays.
func TestCreateThatIsNotCommitted(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	must(t, os.WriteFile(path, []byte("old"), 0o644))
	f, err := Create(path)
	must(t, err)
	_, err = f.WriteString("half")
	must(t, err, f.Close())
	entries, err := os.ReadDir(filepath.Dir(path))
	if text, readErr := os.ReadFile(path); string(text) != "old" || len(entries) != 1 || errors.Join(err, readErr) != nil {
		t.Errorf("%q, %v, %v %v", text, entries, err, readErr)
	}
}

// TestCreateWritesToStreams checks that /dev/stdout is written to, for any type of file, and never replaced.
func TestCreateWritesToStreams(t *testing.T) {
	dir := t.TempDir()
	must(t, os.Symlink("/proc/self/fd", filepath.Join(dir, "fd")))
	regular, err := os.Create(filepath.Join(dir, "regular"))
	must(t, err)
	reader, writer, err := os.Pipe()
	must(t, err)
	for _, f := range []*os.File{regular, writer} {
		// With sudo it belongs to another user.
		if os.Geteuid() == 0 {
			must(t, f.Chown(foreignUID, foreignUID))
		}
		path := filepath.Join(dir, "fd", strconv.Itoa(int(f.Fd())))
		must(t, WriteFile(path, []byte("text")), f.Close())
	}
	piped, err := io.ReadAll(reader)
	must(t, err, reader.Close())
	if text, err := os.ReadFile(regular.Name()); string(text) != "text" || string(piped) != "text" || err != nil {
		t.Errorf("%q %q %v", text, piped, err)
	}
	if target, err := os.Readlink(filepath.Join(dir, "fd")); target != "/proc/self/fd" || err != nil {
		t.Errorf("the link became %q, %v", target, err)
	}
	must(t, WriteFile(os.DevNull, []byte("text")))
	if info, err := os.Stat(os.DevNull); err != nil || info.Mode().IsRegular() {
		t.Errorf("the device became %v %v", info, err)
	}
}

// TestSockets checks that a socket of another user is refused, also behind a link.
func TestSockets(t *testing.T) {
	needsRoot(t)
	dir := tree(t)
	listen := func(name string) string {
		path := filepath.Join(dir, name)
		fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
		must(t, err, unix.Bind(fd, &unix.SockaddrUnix{Name: path}), unix.Close(fd))
		return path
	}
	own, his, link := listen("own/s"), listen("his/s"), filepath.Join(dir, "his/l")
	must(t, os.Chown(his, foreignUID, foreignUID), os.Symlink(own, link), os.Lchown(link, foreignUID, foreignUID))
	for path, want := range map[string]struct{ is, trusted bool }{
		own: {true, true}, his: {true, false}, link: {false, false}, dir + "/own/file": {false, true}, "/absent": {false, true},
	} {
		is, err := IsSocket(path)
		untrusted := (*UntrustedError)(nil)
		if is != want.is || (err == nil) != want.trusted || (err != nil && !errors.As(err, &untrusted)) {
			t.Errorf("%s: %t %v", path, is, err)
		}
	}
}

func TestCheckDir(t *testing.T) {
	needsRoot(t)
	dir := tree(t)
	for path, want := range map[string]string{
		"own":      "",
		"his":      "belongs to user 65534",
		"his/dir":  "belongs to user 65534",
		"own/file": "not a directory",
	} {
		if err := CheckDir(filepath.Join(dir, path)); (err == nil) != (want == "") || (err != nil && !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// TestCheckParents checks that paths below a directory of another user, or one writable for all, are refused, because
// they may change at any time.
func TestCheckParents(t *testing.T) {
	needsRoot(t)
	dir := t.TempDir()
	for _, name := range []string{"his/own", "open/own", "sticky/own", "own/own", "group/own", "roots/own", "sticky-group/own"} {
		must(t, os.MkdirAll(filepath.Join(dir, name), 0o755))
	}
	must(t, os.Chown(dir+"/his", foreignUID, foreignUID), os.Chmod(dir+"/open", 0o777),
		os.Chmod(dir+"/sticky", os.ModeSticky|0o777), os.Symlink("his/own", dir+"/link"),
		os.Symlink("open/back", dir+"/chain"), os.Symlink("../own/own", dir+"/open/back"))
	must(t, os.Chown(dir+"/group", 0, foreignUID), os.Chmod(dir+"/group", 0o775), os.Chmod(dir+"/roots", 0o775),
		os.Chown(dir+"/sticky-group", 0, foreignUID), os.Chmod(dir+"/sticky-group", os.ModeSticky|0o775))
	for path, want := range map[string]string{
		"group/own":             "can be written by group 65534",
		"group/own/deep/absent": "can be written by group 65534",
		"roots/own":             "",
		"sticky-group/own":      "",
		"his/own":               "belongs to user 65534",
		"his/own/deep/absent":   "belongs to user 65534",
		"link":                  "belongs to user 65534",
		"open/own":              "can be written by others",
		"chain":                 "can be written by others",
		"sticky/own":            "",
		"own/own":               "",
		"own/absent/absent":     "",
	} {
		err := CheckParents(filepath.Join(dir, path))
		if (err == nil) != (want == "") || (err != nil && !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v", path, err)
		}
	}
	for below, want := range map[string]string{"his": "belongs to user 65534", "group": "can be written by group 65534"} {
		program := filepath.Join(dir, below, "own/program")
		must(t, os.WriteFile(program, nil, 0o755))
		for _, at := range []string{filepath.Dir(program), filepath.Dir(linkTo(t, program))} {
			if _, err := LookPath("program", at); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("a program of %s found in %s: %v", below, at, err)
			}
		}
	}
}

// TestLookPath checks that programs are found where root or the user put them, but never below the working directory.
func TestLookPath(t *testing.T) {
	needsRoot(t)
	dir := t.TempDir()
	t.Chdir(dir)
	program := func(name string, owner int, mode os.FileMode) {
		must(t, os.MkdirAll(filepath.Dir(name), 0o755),
			os.WriteFile(name, []byte("#!/bin/sh\n"), 0o600), os.Chmod(name, mode), os.Chown(name, owner, owner))
	}
	program("own/tool", 0, 0o755)
	program("own/his", foreignUID, 0o755)
	program("own/shared", 0, 0o775)
	program("own/data", 0, 0o644)
	program("his/tool", 0, 0o755)
	program("open/tool", 0, 0o755)
	must(t, os.Chown("his", foreignUID, foreignUID), os.Chmod("open", 0o777), os.Symlink(dir+"/his/tool", "own/linked"))
	at := func(names ...string) string {
		for i := range names {
			names[i] = filepath.Join(dir, names[i])
		}
		return strings.Join(names, ":")
	}
	for _, c := range []struct{ program, path, want string }{
		{"tool", at("absent", "own", "his"), ""},
		{"tool", "own:.:", "executable file not found"},
		{"tool", at("his", "own"), "belongs to user 65534"},
		{"tool", at("open"), "can be written by others"},
		{"his", at("own"), "belongs to user 65534"},
		{"shared", at("own"), "can be written by others"},
		{"linked", at("own"), "belongs to user 65534"},
		{"data", at("own"), "executable file not found"},
		{"../own/tool", at("own"), "is a path"},
		{"", at("own"), "is a path"},
	} {
		found, err := LookPath(c.program, c.path)
		if err == nil {
			must(t, found.Close())
		}
		if (err == nil) != (c.want == "") || (err != nil && !strings.Contains(err.Error(), c.want)) ||
			(err == nil && found.Path != at("own/tool")) {
			t.Errorf("%s in %s: %+v %v", c.program, c.path, found, err)
		}
	}
	if _, err := LookPath("absent", at("own")); !errors.Is(err, exec.ErrNotFound) {
		t.Errorf("%v", err)
	}
}

// TestEnviron checks that the caller's secrets, variables of the dynamic linker, and relative directories are not
// passed on.
func TestEnviron(t *testing.T) {
	own, open := t.TempDir(), t.TempDir()
	must(t, os.Chmod(open, 0o777))
	for name, value := range map[string]string{
		"HOME": "/h", "PATH": ".:/bin::bin:/sbin", "TMPDIR": own, "https_proxy": "p", "NO_PROXY": "n", "SSL_CERT_FILE": "c",
		"REGISTRY_PASSWORD": "secret", "LD_PRELOAD": "/evil.so", "AWS_REGION": "r", "AWSX": "x", "GNUPGHOME": "g",
	} {
		t.Setenv(name, value)
	}
	env := Environ("AWS_", "GNUPGHOME")
	for _, want := range []string{
		"HOME=/h", "PATH=/bin:/sbin", "TMPDIR=" + own, "https_proxy=p", "NO_PROXY=n",
		"SSL_CERT_FILE=c", "AWS_REGION=r", "GNUPGHOME=g",
	} {
		if !slices.Contains(env, want) {
			t.Errorf("%s is missing in %q", want, env)
		}
	}
	if text := strings.Join(env, "\n"); strings.Contains(text, "secret") ||
		strings.Contains(text, "evil") || strings.Contains(text, "AWSX") {
		t.Errorf("%q is handed on", env)
	}
	for _, dir := range []string{"relative", open, filepath.Join(own, "absent"), ""} {
		t.Setenv("TMPDIR", dir)
		if slices.ContainsFunc(Environ(), func(v string) bool { return strings.HasPrefix(v, "TMPDIR=") }) {
			t.Errorf("TMPDIR=%q is handed on", dir)
		}
	}
}

// TestCreateReplacesAtOnce checks that a concurrent reader sees either the old or the new content.
func TestCreateReplacesAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	contents := [][]byte{bytes.Repeat([]byte("a"), 1<<16), bytes.Repeat([]byte("b"), 1<<16)}
	must(t, WriteFile(path, contents[0]))
	done := make(chan error)
	go func() {
		var errs []error
		for i := range 100 {
			errs = append(errs, WriteFile(path, contents[i%2]))
		}
		done <- errors.Join(errs...)
	}()
	for {
		select {
		case err := <-done:
			must(t, err)
			return
		default:
		}
		text, err := os.ReadFile(path)
		must(t, err)
		if !bytes.Equal(text, contents[0]) && !bytes.Equal(text, contents[1]) {
			t.Fatalf("%d bytes, which are neither", len(text))
		}
		time.Sleep(time.Microsecond)
	}
}

// linkTo returns a link of root to a program, in a directory of root.
func linkTo(t *testing.T, program string) string {
	t.Helper()
	link := filepath.Join(t.TempDir(), "program")
	must(t, os.Symlink(program, link))
	return link
}
