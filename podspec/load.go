package podspec

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

// DefaultMaxBytes bounds the size of one source, as the kubelet bounds a static
// pod's file.
const DefaultMaxBytes = 10 << 20

// urlTimeout bounds the download of a manifest.
const urlTimeout = 30 * time.Second

// Loader reads manifests from their sources.
type Loader struct {
	// Stdin is read for the source "-".
	Stdin io.Reader
	// HTTP fetches URLs; nil means a client of its own.
	HTTP *http.Client
	// MaxBytes bounds one source; zero means DefaultMaxBytes.
	MaxBytes int64
	// Timeout bounds the download of one; zero means half a minute.
	Timeout time.Duration
}

// source is the text of one source and the name it is known by.
type source struct {
	name string
	text []byte
}

// IsManifest tells whether a command's argument names a manifest and not a pod:
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

// Load reads every source and everything in it. The error says that a source
// could not be read; what is wrong with its content is in the manifest's
// problems.
func (l Loader) Load(ctx context.Context, sources ...string) (*Manifest, error) {
	var read []source
	for _, name := range sources {
		found, err := l.read(ctx, name)
		if err != nil {
			return nil, err
		}
		read = append(read, found...)
	}
	a := &assembly{}
	for _, s := range read {
		a.addSource(s)
	}
	return a.manifest(), nil
}

func (l Loader) read(ctx context.Context, name string) ([]source, error) {
	switch {
	case name == "-":
		return l.readStdin(ctx)
	case isURL(name):
		return l.readURL(ctx, name)
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
		return l.readDir(ctx, path)
	}
	return l.readFile(ctx, path)
}

func (l Loader) readStdin(ctx context.Context) ([]source, error) {
	if l.Stdin == nil {
		return nil, errors.New("reading manifest from standard input: there is none")
	}
	text, err := l.readAll(ctx, "standard input", func(limit int64) ([]byte, error) { return ReadAtMost(l.Stdin, limit) })
	return []source{{name: "-", text: text}}, err
}

func (l Loader) readFile(ctx context.Context, path string) ([]source, error) {
	text, err := l.readAll(ctx, path, func(limit int64) ([]byte, error) { return ReadFileAtMost(path, limit) })
	return []source{{name: path, text: text}}, err
}

// readDir reads the manifests that lie directly in a directory, by name. Backup
// files and hidden ones are left alone.
func (l Loader) readDir(ctx context.Context, dir string) ([]source, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("reading manifests: %w", err)
	}
	var found []source
	for _, entry := range entries {
		if entry.IsDir() || strings.HasPrefix(entry.Name(), ".") || !isManifestFile(entry.Name()) {
			continue
		}
		read, err := l.readFile(ctx, filepath.Join(dir, entry.Name()))
		if err != nil {
			return nil, err
		}
		found = append(found, read...)
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("reading manifests: %s holds no *.yaml, *.yml or *.json file", dir)
	}
	return found, nil
}

// readURL fetches a manifest. Plain http is only taken from this machine: what
// runs as root is not read from a connection anyone can change.
func (l Loader) readURL(ctx context.Context, name string) ([]source, error) {
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
	limit := cmp.Or(l.Timeout, urlTimeout)
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("it took longer than %s", limit))
	defer cancel()
	text, err := l.fetch(ctx, u)
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("reading manifest %s: %w", u.Redacted(), err)
	}
	return []source{{name: u.Redacted(), text: text}}, nil
}

func (l Loader) fetch(ctx context.Context, u *url.URL) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), http.NoBody)
	if err != nil {
		return nil, err
	}
	client := http.Client{}
	if l.HTTP != nil {
		client = *l.HTTP
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
	return ReadAtMost(reply.Body, cmp.Or(l.MaxBytes, DefaultMaxBytes))
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

// isTrusted tells that nobody on the way can change what comes from there.
func isTrusted(u *url.URL) bool {
	return u.Scheme == "https" || (u.Scheme == "http" && isLoopback(u.Hostname()))
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || (ip != nil && ip.IsLoopback())
}

// readAll reads beside the context: what is named may be a pipe.
func (l Loader) readAll(ctx context.Context, name string, read func(limit int64) ([]byte, error)) ([]byte, error) {
	text, err := ReadUntil(ctx, func() ([]byte, error) { return read(cmp.Or(l.MaxBytes, DefaultMaxBytes)) })
	if named := (*fs.PathError)(nil); errors.As(err, &named) {
		// It has the name in it.
		return nil, fmt.Errorf("reading manifest: %w", err)
	}
	if err != nil {
		return nil, fmt.Errorf("reading manifest %s: %w", name, err)
	}
	return text, nil
}
