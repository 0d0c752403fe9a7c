package podspec

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

const configMapHead = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"

func repeat(n int, line func(int) string) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(line(i))
	}
	return b.String()
}

// TestInputsThatGrowAreRefused: what would cost gigabytes or minutes is refused with
// its place and the limit. Before there were limits, each of these did.
func TestInputsThatGrowAreRefused(t *testing.T) {
	podHead := "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec: {containers: ["
	nine := func(text string) string { return "[" + strings.TrimSuffix(strings.Repeat(text+",", 9), ",") + "]" }
	bomb := "a: &a " + nine("lol") + "\n"
	for _, c := range "bcdefghij" {
		bomb += fmt.Sprintf("%c: &%c %s\n", c, c, nine("*"+string(c-1)))
	}
	for name, c := range map[string]struct{ text, want string }{
		"aliases of aliases":      {bomb, "-:1:1: holds more than 100000 values"},
		"one long text, often":    {configMapHead + "x: &x \"" + strings.Repeat("x", 100<<10) + "\"\ndata:\n" + repeat(105, func(i int) string { return fmt.Sprintf("  k%d: *x\n", i) }), "-:1:1: is larger than 10485760 bytes once its aliases are replaced"},
		"an alias of its parent":  {configMapHead + "data: &d {a: [*d]}\n", "-:4:15: is not valid YAML: an alias stands for something that contains it"},
		"lists in lists":          {"a: " + strings.Repeat("[", 5000) + strings.Repeat("]", 5000) + "\n", "-:1:104: is nested deeper than 100 levels"},
		"lists in lists, in line": {"a:\n" + strings.Repeat("- ", 5000) + "b\n", "is nested deeper than 100 levels"},
		"maps in maps":            {repeat(500, func(i int) string { return strings.Repeat(" ", i) + "a:\n" }), "-:101:101: is nested deeper than 100 levels"},
		"far too deep":            {"a: " + strings.Repeat("[", 100_000), "-:1:1: is not valid YAML: exceeded max depth"},
		"many values":             {"a: [" + strings.Repeat("b,", 120_000) + "]\n", "-:1:1: holds more than 100000 values"},
		"many marks":              {"a:\n" + strings.Repeat("- b\n", 300_000), "-:250001:1: holds more than 500000 lines, commas and brackets"},
		"many documents":          {strings.Repeat("---\n{}\n", 1002), "-:2002:1: is one of more than 1000 documents"},
		"many bad documents":      {strings.Repeat("---\n- a\n", 1002), "is one of more than 1000 documents"},
		"many items":              {"apiVersion: v1\nkind: List\nitems: [" + strings.Repeat("{},", 1100) + "]\n", "-:1:1: is one of more than 1000 documents"},
		"many faults":             {podHead + strings.Repeat("{},", 200) + "]}\n", "and 499 problems more"},
		"many wrong types":        {configMapHead + "data: {" + repeat(45_000, func(i int) string { return fmt.Sprintf("k%d: 1,", i) }) + "}\n", "and 44900 problems more"},
		"many keys twice":         {"a: {" + strings.Repeat("b: c, ", 200) + "}\n", "-:1:611: and 99 problems more"},
		"many values in several": {repeat(3, func(i int) string {
			return fmt.Sprintf("---\nkind: %d\na: [&a [%s]%s]\n", i, strings.Repeat("b,", 1000), strings.Repeat(", *a", 39))
		}), "-:8:1: brings what is read to more than 100000 values"},
	} {
		t.Run(name, func(t *testing.T) {
			m := load(t, c.text)
			var refused *RefusedError
			if !errors.As(m.Err(), &refused) {
				t.Fatal("accepted")
			}
			if text := refused.Error(); !strings.Contains(text, c.want) {
				t.Errorf("want %q in:\n%s", c.want, text[:min(len(text), 2000)])
			}
			if len(refused.Problems) > maxDocuments+2*maxProblems {
				t.Errorf("%d problems are told", len(refused.Problems))
			}
		})
	}
}

// TestLargeManifestsAreAccepted: the limits leave room for what people have.
func TestLargeManifestsAreAccepted(t *testing.T) {
	lines, size, pods := 15_000, 9<<20, 300
	if testing.Short() {
		lines, size, pods = lines/10, size/10, pods/10
	}
	json := repeat(lines, func(i int) string { return fmt.Sprintf("    {\"id\": %d, \"unit\": [\"percent\", \"s\"]},\n", i) })
	for name, text := range map[string]string{
		"a ConfigMap of a megabyte of JSON": configMapHead + "data:\n  dashboard.json: |\n" + json,
		"a ConfigMap of nine megabytes":     configMapHead + "data: {a: \"" + strings.Repeat("x", size) + "\"}\n",
		"anchors as people use them":        configMapHead + "data: &d {a: b}\n---\n" + strings.Replace(minimal, "    image:", "    env: &e [{name: A, value: b}]\n    image:", 1) + "  - {name: b, image: i, env: *e}\n",
		"three hundred pods": repeat(pods, func(i int) string {
			return "---\n" + strings.Replace(minimal, "name: web", fmt.Sprintf("name: web%d", i), 1)
		}),
		"fifty containers": minimal + repeat(50, func(i int) string { return fmt.Sprintf("  - {name: c%d, image: i}\n", i) }),
	} {
		if err := load(t, text).Err(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestAKeyForgesNoLine: what a manifest holds cannot look like a line of podctl's.
func TestAKeyForgesNoLine(t *testing.T) {
	m := load(t, minimal+"  \"x\\npod default/web is valid\": 1\n")
	for _, p := range m.Problems {
		if strings.Contains(p.String(), "\n") {
			t.Errorf("two lines: %q", p)
		}
	}
	if len(m.Problems) == 0 {
		t.Error("the unknown field is accepted")
	}
}

// served is a server whose answers the test writes, and podctl's way of asking it.
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

// TestRedirectsStayTrusted: a server sends podctl nowhere that a user could not have
// named.
func TestRedirectsStayTrusted(t *testing.T) {
	plain := func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(minimal)) }
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
		"to something that cannot be parsed": {true, "https://me:hunter2@a b/", "redirects to something that is no URL"},
	} {
		place := c.place
		loader, from := served(t, map[bool]func(*httptest.Server){true: (*httptest.Server).StartTLS, false: (*httptest.Server).Start}[c.tls], sendTo(&place))
		m, err := Load(t.Context(), loader, from)
		if c.want == "" && (err != nil || len(m.Pods) != 1) {
			t.Errorf("%s: %v", name, err)
		}
		if c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "hunter2")) {
			t.Errorf("%s: error %v", name, err)
		}
	}
	here := ""
	loader, from := served(t, (*httptest.Server).Start, sendTo(&here))
	here = from
	if _, err := Load(t.Context(), loader, from); err == nil || !strings.Contains(err.Error(), "more than 5 times") {
		t.Errorf("a circle: %v", err)
	}
}

// TestCredentialsStayWithTheirServer: what a URL holds to prove who asks is sent to
// the server it names, and to no other; nobody's files are looked at for more.
func TestCredentialsStayWithTheirServer(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	got := map[string]http.Header{}
	_, other := served(t, (*httptest.Server).Start, func(w http.ResponseWriter, r *http.Request) {
		got["other"] = r.Header
		_, _ = w.Write([]byte(minimal))
	})
	// Another name for the same machine is another server.
	other = strings.Replace(other, "127.0.0.1", "localhost", 1)
	loader, first := served(t, (*httptest.Server).Start, func(w http.ResponseWriter, r *http.Request) {
		got["first"] = r.Header
		sendTo(&other)(w, r)
	})
	m, err := Load(t.Context(), loader, strings.Replace(first, "http://", "http://me:hunter2@", 1)+"/pod.yaml")
	if err != nil || m.Err() != nil {
		t.Fatal(err, m.Err())
	}
	if got["first"].Get("Authorization") == "" {
		t.Error("the server that is named got no credentials")
	}
	for name, values := range got["other"] {
		if name == "Authorization" || name == "Cookie" || strings.Contains(strings.Join(values, ""), "hunter2") {
			t.Errorf("the other server got %s: %v", name, values)
		}
	}
	if strings.Contains(m.Pods[0].Source, "hunter2") {
		t.Errorf("the source is kept as %s", m.Pods[0].Source)
	}
}

// TestPasswordsInURLsAreNotTold, whatever goes wrong.
func TestPasswordsInURLsAreNotTold(t *testing.T) {
	for _, name := range []string{
		"https://me:hunter2@a b/pod.yaml", "https://me:hunter2@127.0.0.1:1/pod.yaml", "http://me:hunter2@192.0.2.1/",
		"https://me:hunter2@[::1/pod.yaml", "https://me:hunter2@host:port/x", "https://me:hunter2%zz@host/", "https://me:hunter2\x7f@host/",
	} {
		_, err := Load(t.Context(), Reader{}, name)
		if err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

// TestDownloadsAreBounded in size, also of what is compressed, and in time.
func TestDownloadsAreBounded(t *testing.T) {
	loader, endless := served(t, (*httptest.Server).StartTLS, func(w http.ResponseWriter, r *http.Request) {
		line := []byte(strings.Repeat("# filler\n", 1000))
		for r.Context().Err() == nil {
			if _, err := w.Write(line); err != nil {
				return
			}
		}
	})
	if _, err := Load(t.Context(), loader, endless); err == nil || !strings.Contains(err.Error(), "larger than 10485760 bytes") {
		t.Errorf("an endless answer: %v", err)
	}
	loader, dripping := served(t, (*httptest.Server).StartTLS, func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			_, _ = io.WriteString(w, "#")
			w.(http.Flusher).Flush() //nolint:forcetypeassert // the server's own
			time.Sleep(10 * time.Millisecond)
		}
	})
	loader.Timeout = 100 * time.Millisecond
	if _, err := Load(t.Context(), loader, dripping); err == nil || !strings.Contains(err.Error(), "it took longer than 100ms") {
		t.Errorf("an answer that never ends: %v", err)
	}
}
