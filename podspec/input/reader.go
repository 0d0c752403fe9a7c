package input

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Reader reads the texts of manifests.
type Reader struct {
	// Stdin is read for the source "-".
	Stdin io.Reader
	// HTTP fetches URLs. If nil, Reader uses its own client.
	HTTP *http.Client
	// Namespace is the namespace of objects that have none; empty means default.
	Namespace string
	// Recursive reads directories recursively.
	Recursive bool
	// MaxBytes limits one source; zero means DefaultMaxBytes.
	MaxBytes int64
	// Timeout limits one download or the reading of one file. Zero means 30 seconds for a download and 10 seconds for a
	// file.
	Timeout time.Duration
}

// Source is the text of one source with its name: an absolute path, a URL without its password, or "-".
type Source struct {
	Name string
	Text []byte
	// Namespace is the namespace of objects that have none; empty means default.
	Namespace string
}

// IsManifest reports whether an argument of a command names a manifest and not a pod. Manifests are "-", an http(s)
// URL, a path that begins with ./, ../ or / or ends in /, or a name that ends in .yaml, .yml or .json.
func IsManifest(arg string) bool {
	if arg == "-" || IsURL(arg) {
		return true
	}
	for _, prefix := range []string{"./", "../", "/"} {
		if strings.HasPrefix(arg, prefix) {
			return true
		}
	}
	return arg == "." || arg == ".." || strings.HasSuffix(arg, "/") || IsManifestFile(arg)
}

// IsURL reports whether a name is an HTTP or HTTPS URL.
func IsURL(name string) bool {
	return strings.HasPrefix(name, "http://") || strings.HasPrefix(name, "https://")
}

// IsManifestFile reports whether a file with this name can be a manifest.
func IsManifestFile(name string) bool {
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
	case IsURL(name):
		return r.readURL(ctx, name)
	}
	path, err := filepath.Abs(name)
	if err != nil {
		return nil, fmt.Errorf("reading manifest %s: %w", name, err)
	}
	info, err := within(ctx, r.Timeout, func() (fs.FileInfo, error) { return os.Stat(path) })
	if err != nil {
		return nil, reading(path, err)
	}
	if info.IsDir() {
		return r.readDir(ctx, path)
	}
	text, err := readNamed(ctx, path, r.maxBytes(), r.Timeout)
	return []Source{{Name: path, Text: text}}, reading(path, err)
}

func (r Reader) maxBytes() int64 { return cmp.Or(r.MaxBytes, DefaultMaxBytes) }

func (r Reader) readStdin(ctx context.Context) ([]Source, error) {
	if r.Stdin == nil {
		return nil, errors.New("reading manifest from standard input: there is none")
	}
	text, err := Until(ctx, func() ([]byte, error) { return ReadAtMost(r.Stdin, r.maxBytes()) })
	return []Source{{Name: "-", Text: text}}, reading("standard input", err)
}

// readDir reads the manifests in a directory by name, or everywhere below it if Recursive is set. It skips backup files
// and hidden files, and does not follow links to directories (kubectl: ExpandPathsToFileVisitors).
func (r Reader) readDir(ctx context.Context, dir string) ([]Source, error) {
	files, err := within(ctx, r.Timeout, func() ([]string, error) { return r.manifestsIn(ctx, dir) })
	if err != nil {
		return nil, readingAll(dir, err)
	}
	var found []Source
	var size int64
	for _, path := range files {
		text, err := readFile(ctx, path, r.maxBytes(), r.Timeout)
		if err != nil {
			return nil, reading(path, err)
		}
		if size += int64(len(text)); size > maxTogether {
			return nil, readingAll(dir, errTogether)
		}
		found = append(found, Source{Name: path, Text: text})
	}
	if len(found) == 0 {
		hint := " (-R also reads its subdirectories)"
		if r.Recursive {
			hint = ""
		}
		return nil, fmt.Errorf("reading manifests: %s contains no *.yaml, *.yml or *.json file%s", dir, hint)
	}
	return found, nil
}

// reading adds the name of the manifest to an error. It returns nil for nil.
func reading(name string, err error) error {
	if err == nil {
		return nil
	}
	if named := (*fs.PathError)(nil); errors.As(err, &named) {
		// The error already has the path.
		return fmt.Errorf("reading manifest: %w", err)
	}
	return fmt.Errorf("reading manifest %s: %w", name, err)
}

// readingAll adds the name of the directory to an error.
func readingAll(dir string, err error) error {
	if named := (*fs.PathError)(nil); errors.As(err, &named) {
		return fmt.Errorf("reading manifests: %w", err)
	}
	return fmt.Errorf("reading manifests in %s: %w", dir, err)
}
