package input

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// urlTimeout bounds the download of a manifest.
const urlTimeout = 30 * time.Second

// Reader reads the texts of manifests.
type Reader struct {
	// Stdin is read for the source "-".
	Stdin io.Reader
	// HTTP fetches URLs; nil means a client of its own.
	HTTP *http.Client
	// Namespace is that of objects which name none; empty means default.
	Namespace string
	// Recursive goes into the directories below a directory as well.
	Recursive bool
	// MaxBytes bounds one source; zero means DefaultMaxBytes.
	MaxBytes int64
	// Timeout bounds the download of one; zero means half a minute.
	Timeout time.Duration
}

// Source is the text of one source, and the name it is known by: an absolute path, a URL
// without its password, or "-".
type Source struct {
	Name string
	Text []byte
	// Namespace is that of objects which name none; empty means default.
	Namespace string
}

// IsManifest reports whether a command's argument names a manifest and not a pod:
// "-", an http(s) URL, a path beginning with ./, ../ or / or ending in /, or a name ending
// in .yaml, .yml or .json.
func IsManifest(arg string) bool {
	if arg == "-" || isURL(arg) {
		return true
	}
	for _, prefix := range []string{"./", "../", "/"} {
		if strings.HasPrefix(arg, prefix) {
			return true
		}
	}
	return arg == "." || arg == ".." || strings.HasSuffix(arg, "/") || isManifestFile(arg)
}

func isURL(name string) bool {
	return strings.HasPrefix(name, "http://") || strings.HasPrefix(name, "https://")
}

func isManifestFile(name string) bool {
	return slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(name))
}

// Read reads files, directories, URLs, and standard input ("-").
func (r Reader) Read(ctx context.Context, names ...string) ([]Source, error) {
	var all []Source
	for _, name := range names {
		found, err := r.read(ctx, name)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	for i := range all {
		all[i].Namespace = r.Namespace
	}
	return all, nil
}

func (r Reader) read(ctx context.Context, name string) ([]Source, error) {
	switch {
	case name == "-":
		return r.readStdin(ctx)
	case isURL(name):
		return r.readURL(ctx, name)
	}
	path, err := filepath.Abs(name)
	if err != nil {
		return nil, fmt.Errorf("reading manifest %s: %w", name, err)
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("reading manifest: %w", err)
	}
	if info.IsDir() {
		return r.readDir(ctx, path)
	}
	return r.readFile(ctx, path)
}

func (r Reader) readStdin(ctx context.Context) ([]Source, error) {
	if r.Stdin == nil {
		return nil, errors.New("reading manifest from standard input: there is none")
	}
	text, err := r.readAll(ctx, "standard input", func(limit int64) ([]byte, error) { return ReadAtMost(r.Stdin, limit) })
	return []Source{{Name: "-", Text: text}}, err
}

func (r Reader) readFile(ctx context.Context, path string) ([]Source, error) {
	text, err := r.readAll(ctx, path, func(limit int64) ([]byte, error) { return ReadFileAtMost(path, limit) })
	return []Source{{Name: path, Text: text}}, err
}

// readDir reads the manifests that lie directly in a directory, or anywhere below it when it
// is read recursively, by name. Backup files and what is hidden are left alone, and links to
// directories are not followed (kubectl: ExpandPathsToFileVisitors).
func (r Reader) readDir(ctx context.Context, dir string) ([]Source, error) {
	files, err := r.manifestsIn(dir)
	if err != nil {
		return nil, fmt.Errorf("reading manifests: %w", err)
	}
	var found []Source
	for _, path := range files {
		read, err := r.readFile(ctx, path)
		if err != nil {
			return nil, err
		}
		found = append(found, read...)
	}
	if len(found) == 0 {
		hint := " (-R looks in the directories below it too)"
		if r.Recursive {
			hint = ""
		}
		return nil, fmt.Errorf("reading manifests: %s holds no *.yaml, *.yml or *.json file%s", dir, hint)
	}
	return found, nil
}

// manifestsIn lists the files of a directory that can be manifests.
func (r Reader) manifestsIn(dir string) (files []string, err error) {
	// The separator makes a link to a directory the directory.
	root := dir + string(filepath.Separator)
	err = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		hidden := path != root && strings.HasPrefix(entry.Name(), ".")
		switch {
		case err != nil:
			return err
		case entry.IsDir() && path != root && (hidden || !r.Recursive):
			return fs.SkipDir
		case !entry.IsDir() && !hidden && isManifestFile(entry.Name()):
			files = append(files, path)
		}
		return nil
	})
	return files, err
}

// readURL fetches a manifest. Plain http is only taken from this machine: what
// runs as root is not read from a connection anyone can change.
func (r Reader) readURL(ctx context.Context, name string) ([]Source, error) {
	u, err := url.Parse(name)
	if whole := (*url.Error)(nil); errors.As(err, &whole) {
		// The whole quotes the URL, with the password that may be in it.
		return nil, fmt.Errorf("reading manifest: the URL cannot be read: %w", whole.Err)
	}
	if err != nil {
		return nil, fmt.Errorf("reading manifest: %w", err)
	}
	if !isTrusted(u) {
		return nil, fmt.Errorf("reading manifest %s: plain http is only accepted from this machine; use https", u.Redacted())
	}
	limit := cmp.Or(r.Timeout, urlTimeout)
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("it took longer than %s", limit))
	defer cancel()
	text, err := r.fetch(ctx, u)
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("reading manifest %s: %w", u.Redacted(), err)
	}
	return []Source{{Name: u.Redacted(), Text: text}}, nil
}

func (r Reader) fetch(ctx context.Context, u *url.URL) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), http.NoBody)
	if err != nil {
		return nil, err
	}
	client := http.Client{}
	if r.HTTP != nil {
		client = *r.HTTP
	}
	client.CheckRedirect = checkRedirect
	reply, err := client.Do(req)
	if whole := (*url.Error)(nil); errors.As(err, &whole) {
		// The whole quotes the URL it came to, which may hold a server's password.
		err = whole.Err
	}
	if err != nil && strings.Contains(err.Error(), "Location header") {
		err = errors.New("the server redirects to something that is no URL")
	}
	if err != nil {
		return nil, err
	}
	defer reply.Body.Close() //nolint:errcheck // the body is read to its end or given up
	if reply.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the server answered %s", reply.Status)
	}
	return ReadAtMost(reply.Body, cmp.Or(r.MaxBytes, DefaultMaxBytes))
}

// maxRedirects is how often a server may send podctl on to another place.
const maxRedirects = 5

// checkRedirect holds the places that a server names to what a user may name, and
// does not go on from https to a connection that anyone can change. What a user may
// have put into the first URL to prove who he is stays with its host.
func checkRedirect(next *http.Request, before []*http.Request) error {
	switch {
	case len(before) > maxRedirects:
		return fmt.Errorf("the server redirects more than %d times", maxRedirects)
	case !isTrusted(next.URL) || (next.URL.Scheme == "http" && before[len(before)-1].URL.Scheme != "http"):
		return fmt.Errorf("the server redirects to %s, which is neither https nor on this machine", next.URL.Redacted())
	}
	return nil
}

// isTrusted reports whether nobody on the way can change what comes from a URL.
func isTrusted(u *url.URL) bool {
	return u.Scheme == "https" || (u.Scheme == "http" && isLoopback(u.Hostname()))
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || (ip != nil && ip.IsLoopback())
}

// readAll reads beside the context: what is named may be a pipe.
func (r Reader) readAll(ctx context.Context, name string, read func(limit int64) ([]byte, error)) ([]byte, error) {
	text, err := ReadUntil(ctx, func() ([]byte, error) { return read(cmp.Or(r.MaxBytes, DefaultMaxBytes)) })
	if named := (*fs.PathError)(nil); errors.As(err, &named) {
		// It has the name in it.
		return nil, fmt.Errorf("reading manifest: %w", err)
	}
	if err != nil {
		return nil, fmt.Errorf("reading manifest %s: %w", name, err)
	}
	return text, nil
}
