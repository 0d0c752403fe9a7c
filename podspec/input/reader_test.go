package input

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// manifest is the text to read. These tests do not parse it.
const manifest = "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\n"

// served starts a server with the given answers and returns a Reader for it and its URL.
func served(t *testing.T, start func(*httptest.Server), answer http.HandlerFunc) (Reader, string) {
	t.Helper()
	server := httptest.NewUnstartedServer(answer)
	start(server)
	t.Cleanup(server.Close)
	return Reader{HTTP: server.Client()}, server.URL
}

func sendTo(place *string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Location", *place)
		w.WriteHeader(http.StatusFound)
	}
}

// TestRedirectsStayTrusted checks that a redirect leads only to URLs that a user could name.
func TestRedirectsStayTrusted(t *testing.T) {
	plain := func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(manifest)) }
	_, target := served(t, (*httptest.Server).Start, plain)
	for name, c := range map[string]struct {
		tls         bool
		place, want string
	}{
		"to plain http":                      {true, "http://192.0.2.1/pod.yaml", "which is neither https nor on this machine"},
		"to plain http on this machine":      {true, target, "which is neither https nor on this machine"},
		"from this machine to plain http":    {false, "http://192.0.2.1/pod.yaml", "which is neither https nor on this machine"},
		"to a file":                          {true, "file:///etc/shadow", "which is neither https nor on this machine"},
		"to a password":                      {true, "http://me:hunter2@192.0.2.1/", "http://me:xxxxx@192.0.2.1/, which is neither"},
		"from this machine to this machine":  {false, target, ""},
		"to something that cannot be parsed": {true, "https://me:hunter2@a b/", "redirects to an invalid URL"},
	} {
		place := c.place
		start := (*httptest.Server).Start
		if c.tls {
			start = (*httptest.Server).StartTLS
		}
		reader, from := served(t, start, sendTo(&place))
		read, err := reader.Read(t.Context(), from)
		if c.want == "" && (err != nil || len(read) != 1 || string(read[0].Text) != manifest) {
			t.Errorf("%s: %v", name, err)
		}
		if c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "hunter2")) {
			t.Errorf("%s: error %v", name, err)
		}
	}
	here := ""
	reader, from := served(t, (*httptest.Server).Start, sendTo(&here))
	here = from
	if _, err := reader.Read(t.Context(), from); err == nil || !strings.Contains(err.Error(), "more than 5 times") {
		t.Errorf("a circle: %v", err)
	}
}

// TestCredentialsStayWithTheirServer checks that the credentials in a URL are sent only to its server, and that no
// files are searched for credentials.
func TestCredentialsStayWithTheirServer(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	got := map[string]http.Header{}
	_, other := served(t, (*httptest.Server).Start, func(w http.ResponseWriter, r *http.Request) {
		got["other"] = r.Header
		_, _ = w.Write([]byte(manifest))
	})
	// Another name for the same machine counts as another server.
	other = strings.Replace(other, "127.0.0.1", "localhost", 1)
	reader, first := served(t, (*httptest.Server).Start, func(w http.ResponseWriter, r *http.Request) {
		got["first"] = r.Header
		sendTo(&other)(w, r)
	})
	read, err := reader.Read(t.Context(), strings.Replace(first, "http://", "http://me:hunter2@", 1)+"/pod.yaml")
	if err != nil || len(read) != 1 {
		t.Fatal(err)
	}
	if got["first"].Get("Authorization") == "" {
		t.Error("the server that is named got no credentials")
	}
	for name, values := range got["other"] {
		if name == "Authorization" || name == "Cookie" || strings.Contains(strings.Join(values, ""), "hunter2") {
			t.Errorf("the other server got %s: %v", name, values)
		}
	}
	if strings.Contains(read[0].Name, "hunter2") {
		t.Errorf("the source is kept as %s", read[0].Name)
	}
}

// TestErrorsHideURLPasswords checks that no error shows a password.
func TestErrorsHideURLPasswords(t *testing.T) {
	for _, name := range []string{
		"https://me:hunter2@a b/pod.yaml", "https://me:hunter2@127.0.0.1:1/pod.yaml", "http://me:hunter2@192.0.2.1/",
		"https://me:hunter2@[::1/pod.yaml", "https://me:hunter2@host:port/x", "https://me:hunter2%zz@host/", "https://me:hunter2\x7f@host/",
	} {
		_, err := Reader{}.Read(t.Context(), name)
		if err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

// TestDownloadsAreBounded checks the limits for size, also of compressed data, and for time.
func TestDownloadsAreBounded(t *testing.T) {
	reader, endless := served(t, (*httptest.Server).StartTLS, func(w http.ResponseWriter, r *http.Request) {
		line := []byte(strings.Repeat("# filler\n", 1000))
		for r.Context().Err() == nil {
			if _, err := w.Write(line); err != nil {
				return
			}
		}
	})
	reader.Timeout = time.Hour
	if _, err := reader.Read(t.Context(), endless); err == nil || !strings.Contains(err.Error(), "larger than 10485760 bytes") {
		t.Errorf("an endless answer: %v", err)
	}
	reader, dripping := served(t, (*httptest.Server).StartTLS, func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			_, _ = io.WriteString(w, "#")
			w.(http.Flusher).Flush() // the server's own
			time.Sleep(10 * time.Millisecond)
		}
	})
	reader.Timeout = 100 * time.Millisecond
	if _, err := reader.Read(t.Context(), dripping); err == nil || !strings.Contains(err.Error(), "it took longer than 100ms") {
		t.Errorf("an answer that never ends: %v", err)
	}
}

func TestMissingFileIsAnError(t *testing.T) {
	_, err := Reader{}.Read(t.Context(), "/absent/pod.yaml")
	if !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "/absent/pod.yaml") {
		t.Errorf("error %v", err)
	}
}

func TestDirectoryTakesManifestsOnly(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"b.yaml":       strings.Replace(manifest, "name: web", "name: b", 1),
		"a.yml":        manifest,
		"c.yaml.bak":   "garbage",
		".hidden.yaml": "garbage",
		"notes.txt":    "garbage",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	read, err := Reader{}.Read(t.Context(), dir)
	if err != nil || len(read) != 2 || string(read[0].Text) != manifest || filepath.Base(read[1].Name) != "b.yaml" {
		t.Errorf("%v: read %v", err, read)
	}
}

func TestSourcesAreBounded(t *testing.T) {
	_, err := Reader{Stdin: strings.NewReader(strings.Repeat("# filler\n", 100)), MaxBytes: 100}.Read(t.Context(), "-")
	if err == nil || !strings.Contains(err.Error(), "larger than 100 bytes") {
		t.Errorf("error %v", err)
	}
}

// TestDirectories checks that a directory has the manifests in it, recursively also those below it, but no hidden
// files.
func TestDirectories(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"b.yaml", "a/c.yml", "a/d/e.json", ".hidden.yaml", ".git/x.yaml", "a/notes.txt"} {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(manifest), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	for _, root := range []string{dir, link} {
		for recursive, want := range map[bool]string{false: "b.yaml", true: "a/c.yml a/d/e.json b.yaml"} {
			read, err := Reader{Recursive: recursive, Namespace: "other"}.Read(t.Context(), root)
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, s := range read {
				names = append(names, strings.TrimPrefix(s.Name, root+"/"))
				if s.Namespace != "other" {
					t.Errorf("%s is in the namespace %q", s.Name, s.Namespace)
				}
			}
			if got := strings.Join(names, " "); got != want {
				t.Errorf("recursive %t: %s, want %s", recursive, got, want)
			}
		}
	}
	if _, err := (Reader{}).Read(t.Context(), filepath.Join(dir, "a", "d", "..", "..", ".git", "..")); err != nil {
		t.Error(err)
	}
	if err := os.Remove(filepath.Join(dir, "b.yaml")); err != nil {
		t.Fatal(err)
	}
	if _, err := (Reader{}).Read(t.Context(), dir); err == nil || !strings.Contains(err.Error(), "-R also reads its subdirectories") {
		t.Error(err)
	}
}

// TestPipesWithoutWriters checks that a pipe without a writer is waited for as long as the caller waits, and that late
// text is read. A pipe in a directory is refused at once.
func TestPipesWithoutWriters(t *testing.T) {
	dir := t.TempDir()
	pipe, other := filepath.Join(dir, "pod.yaml"), filepath.Join(t.TempDir(), "pod.yaml")
	if err := errors.Join(unix.Mkfifo(pipe, 0o600), unix.Mkfifo(other, 0o600)); err != nil {
		t.Fatal(err)
	}
	stdin, ended := io.Pipe()
	late := errors.New("it took too long")
	for _, name := range []string{pipe, "-"} {
		ctx, cancel := context.WithTimeoutCause(t.Context(), 10*time.Millisecond, late)
		_, err := Reader{Stdin: stdin}.Read(ctx, name)
		cancel()
		if !errors.Is(err, late) || !strings.HasPrefix(err.Error(), "reading manifest ") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := (Reader{}).Read(t.Context(), dir); !errors.Is(err, errNotRegular) {
		t.Errorf("in a directory: %v", err)
	}
	_ = ended.Close()
	// The abandoned goroutine may wait for a writer, or may not have opened the pipe yet. Opening a pipe for reading and
	// writing does not wait.
	writer, err := os.OpenFile(pipe, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = writer.Close() })
	time.AfterFunc(10*time.Millisecond, func() { writeTo(t, other, manifest) })
	if read, err := (Reader{}).Read(t.Context(), other); err != nil || len(read) != 1 || string(read[0].Text) != manifest {
		t.Errorf("what came late was not read: %v", err)
	}
}

func writeTo(t *testing.T, path, text string) {
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Error(err)
	}
}

func TestURL(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/pod.yaml" {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write([]byte(manifest))
	}))
	defer server.Close()
	read, err := Reader{}.Read(t.Context(), server.URL+"/pod.yaml")
	if err != nil || len(read) != 1 || read[0].Name != server.URL+"/pod.yaml" {
		t.Errorf("%v: read %v", err, read)
	}
	if _, err := (Reader{}).Read(t.Context(), server.URL+"/absent.yaml"); err == nil || !strings.Contains(err.Error(), "404") {
		t.Errorf("a missing URL: %v", err)
	}
	if _, err := (Reader{}).Read(context.Background(), "http://192.0.2.1/pod.yaml"); err == nil || !strings.Contains(err.Error(), "https") {
		t.Errorf("plain http from elsewhere: %v", err)
	}
}

func TestIsManifest(t *testing.T) {
	for arg, want := range map[string]bool{
		"-": true, "pod.yaml": true, "pod.yml": true, "pod.json": true, "./dir": true, "../dir": true, "/dir": true,
		"https://x/y": true, "http://x/y": true, ".": true, "dir/": true,
		"web": false, "default/web": false, "pod.txt": false, "91f3cae3": false,
	} {
		if got := IsManifest(arg); got != want {
			t.Errorf("%s: %t", arg, got)
		}
	}
}

// TestURLNames checks that the name of a URL has neither password nor query, but differs for different URLs.
func TestURLNames(t *testing.T) {
	names := map[string]bool{}
	for url, want := range map[string]string{
		"https://host/pods.yaml":                     "https://host/pods.yaml",
		"https://me:hunter2@host/pods.yaml":          "https://me:xxxxx@host/pods.yaml",
		"https://host/pods.yaml?token=hunter2":       "https://host/pods.yaml?xxxxx#",
		"https://host/pods.yaml?token=hunter3":       "https://host/pods.yaml?xxxxx#",
		"https://me:hunter2@host/?hunter2#hunter2":   "https://me:xxxxx@host/?xxxxx#",
		"https://host/pods.yaml?X-Signature=hunter2": "https://host/pods.yaml?xxxxx#",
	} {
		got, err := URLName(url)
		if err != nil || !strings.HasPrefix(got, want) || strings.Contains(got, "hunter") || names[got] {
			t.Errorf("%s is known by %q, %v", url, got, err)
		}
		names[got] = true
	}
	if _, err := URLName("http://192.0.2.1/pods.yaml?token=hunter2"); err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("the error is %v", err)
	}
}
