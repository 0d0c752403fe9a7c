package commands

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/podctl/podctl/podspec/input"
	"github.com/podctl/podctl/podspec/load"
	"github.com/podctl/podctl/runtime/state"
)

// applied makes a state directory in which pods have been applied.
func applied(t *testing.T, manifest string) string {
	t.Helper()
	m, err := load.Load(t.Context(), input.Reader{Stdin: strings.NewReader(manifest)}, "-")
	if err != nil || m.Err() != nil {
		t.Fatal(err, m.Err())
	}
	dir := filepath.Join(t.TempDir(), "state")
	for _, d := range m.Pods {
		pod := state.Layout{Root: dir, LogRoot: t.TempDir()}.Pod(d.Pod.UID)
		if err := pod.WriteJournal(&state.Journal{Applied: d}); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

const completionPods = `{apiVersion: v1, kind: Pod, metadata: {name: hello}, spec: {initContainers: [{name: fetch, image: i}], containers: [{name: web, image: i}, {name: worker, image: i}]}}
---
{apiVersion: v1, kind: Pod, metadata: {name: help}, spec: {containers: [{name: app, image: i}]}}
---
{apiVersion: v1, kind: Pod, metadata: {name: dns, namespace: system}, spec: {containers: [{name: core, image: i}]}}
`

// complete is what a shell is answered, descriptions left out.
func complete(t *testing.T, dir string, words ...string) string {
	t.Helper()
	var out, errs bytes.Buffer
	env := &Env{In: strings.NewReader("never read"), Out: &out, Err: &errs, Now: time.Now, Getenv: func(string) string { return "" }}
	if code := Main(t.Context(), env, append([]string{"__completeNoDesc", "--state-dir", dir}, words...)); code != 0 {
		t.Fatalf("%v: exit code %d\n%s", words, code, errs.String())
	}
	// The rest is what cobra tells about itself, for which the scripts have no use.
	if text := errs.String(); !strings.HasPrefix(text, "Completion ended with directive: ") || strings.Count(text, "\n") != 1 {
		t.Errorf("%v says %q", words, text)
	}
	return strings.Join(strings.Fields(out.String()), " ")
}

func TestComplete(t *testing.T) {
	dir := applied(t, completionPods)
	work := t.TempDir()
	t.Chdir(work)
	for name, text := range map[string]string{
		"help.yaml": completionPods, "notes.txt": "", "manifests/a.json": "", "manifests/b.yml": "", "manifests/c.md": "", ".hidden/x": "",
	} {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	// A directive follows the words: 2 is no space, 4 no files, 8 files with these endings, 16 directories.
	for words, want := range map[string]string{
		"logs he":                         "hello help help.yaml :4",
		"logs hello w":                    "web worker :4",
		"logs hello ":                     "fetch web worker :4",
		"logs hello web ":                 ":4",
		"logs ./help.yaml c":              "core :4",
		"logs nobody ":                    ":4",
		"logs - ":                         ":4",
		"logs hello -c f":                 "fetch :4",
		"probe -c ":                       "fetch web worker app :4",
		"probe --filename help.yaml -c c": "core :4",
		"get ":                            "hello help system/dns help.yaml manifests/ :4",
		"get hello he":                    "help help.yaml :4",
		"get s":                           "system/dns :4",
		"get default/h":                   "default/hello default/help :4",
		"get -n system ":                  "default/hello default/help dns help.yaml manifests/ :4",
		"get ma":                          "manifests/ :6",
		"get manifests/":                  "manifests/a.json manifests/b.yml :4",
		"get ./":                          "yaml yml json :8",
		"get /et":                         "yaml yml json :8",
		"get absent/":                     ":4",
		"apply he":                        "yaml yml json :8",
		"apply -f ":                       "yaml yml json :8",
		"export he":                       "hello help :4",
		"export hello ":                   ":4",
		"get -n ":                         "default system :4",
		"get -o j":                        "json jsonpath= :4",
		"get -o jsonp":                    "jsonpath= :6",
		"apply --pull ":                   "always missing never :4",
		"apply --wait=r":                  "ready :4",
		"wait --for co":                   "completed condition= :4",
		"--color a":                       "auto always :4",
		"plan --timeout ":                 ":4",
		"plan --state-dir ":               ":16",
		"get --snapshot ":                 ":0",
		"node up ":                        ":4",
		"node u":                          "up :4",
		"restart hello web ":              "fetch worker :4",
		"cp he":                           "hello: help: :2",
		"cp hello:/":                      ":4",
		"cp hello:/x ./y ":                ":4",
		"exec he":                         "hello help :4",
		"debug hello --target w":          "web worker :4",
		"events s":                        "system/dns :4",
		"completion f":                    "fish :4",
	} {
		if diff := cmp.Diff(want, complete(t, dir, strings.Split(words, " ")...)); diff != "" {
			t.Errorf("%q (-want +got)\n%s", words, diff)
		}
	}
}

// TestCompletionIsSilent: what is broken or forbidden offers nothing.
func TestCompletionIsSilent(t *testing.T) {
	t.Chdir(t.TempDir())
	dir := applied(t, completionPods)
	journals, err := filepath.Glob(filepath.Join(dir, "pods", "*", "journal.json"))
	if err != nil || len(journals) != 3 {
		t.Fatal(journals, err)
	}
	if err := os.WriteFile(journals[0], []byte("{half"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := complete(t, dir, "get", "-n", "none", ""); len(strings.Fields(got)) != 3 {
		t.Errorf("beside a broken journal: %s", got)
	}
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	for _, absent := range []string{dir, filepath.Join(dir, "none"), journals[0]} {
		if got := complete(t, absent, "get", ""); got != ":4" {
			t.Errorf("%s: %s", absent, got)
		}
	}
	if err := os.WriteFile("broken.yaml", []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := complete(t, dir, "logs", "./broken.yaml", ""); got != ":4" {
		t.Error(got)
	}
}

// TestCompletionStaysLocal: nothing is fetched while somebody types.
func TestCompletionStaysLocal(t *testing.T) {
	asked := false
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked = true }))
	t.Cleanup(server.Close)
	if got := complete(t, t.TempDir(), "logs", server.URL+"/pod.yaml", ""); got != ":4" || asked {
		t.Errorf("%s, the server was asked: %v", got, asked)
	}
}

// TestEverythingCompletes: arguments and flags of every command complete, or say
// that they cannot.
func TestEverythingCompletes(t *testing.T) {
	dir := applied(t, completionPods)
	t.Chdir(t.TempDir())
	g := &globals{env: &Env{Getenv: func(string) string { return "" }}}
	root := newRoot(g)
	g.completeFlags(root)
	walk(root, func(cmd *cobra.Command) {
		if strings.Contains(cmd.Use, "MANIFEST") || strings.Contains(cmd.Use, "POD") {
			words := append(strings.Fields(cmd.CommandPath())[1:], "")
			if complete(t, dir, words...) == ":4" {
				t.Errorf("%s: give it a ValidArgsFunction, see complete.go", cmd.CommandPath())
			}
		}
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if c, ok := f.Value.(*choice); ok {
				how, _ := cmd.GetFlagCompletionFunc(f.Name)
				if words, _ := how(cmd, nil, ""); len(words) == 0 || words[0] != c.words()[0] {
					t.Errorf("%s --%s completes to %v", cmd.CommandPath(), f.Name, words)
				}
			}
		})
	})
}

// TestCompletionScripts: each is written, names podctl, and takes no other shell.
func TestCompletionScripts(t *testing.T) {
	for shell, part := range map[string]string{
		"bash": "complete -o default -F __start_podctl podctl", "zsh": "#compdef podctl", "fish": "complete -c podctl", "powershell": "Register-ArgumentCompleter",
	} {
		code, stdout, stderr := call(t, "", "completion", shell)
		if code != 0 || !strings.Contains(stdout, part) || stderr != "" {
			t.Errorf("%s: exit code %d %s", shell, code, stderr)
		}
	}
	for _, args := range [][]string{{"completion"}, {"completion", "tcsh"}, {"completion", "bash", "zsh"}} {
		if code, _, stderr := call(t, "", args...); code != exitError || !strings.Contains(stderr, "--help") {
			t.Errorf("%v: exit code %d %s", args, code, stderr)
		}
	}
}
