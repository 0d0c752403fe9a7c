package completion_test

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

	"github.com/podctl/podctl/commands"
	"github.com/podctl/podctl/commands/commandstest"
	"github.com/podctl/podctl/commands/completion"
	"github.com/podctl/podctl/commands/config"
	"github.com/podctl/podctl/commands/flags"
	"github.com/podctl/podctl/runtime/state"
)

// complete returns the words offered to a shell, without descriptions.
func complete(t *testing.T, dir string, words ...string) string {
	t.Helper()
	var out, errs bytes.Buffer
	env := &commands.Env{
		In: strings.NewReader("never read"), Out: &out, Err: &errs, Now: time.Now,
		Getenv: func(string) string { return "" },
	}
	code := commands.Main(t.Context(), env, append([]string{"__completeNoDesc", "--state-dir", dir}, words...))
	if code != 0 {
		t.Fatalf("%v: exit code %d\n%s", words, code, errs.String())
	}
	// The other output is cobra's message about its directive, which the scripts ignore.
	if text := errs.String(); !strings.HasPrefix(text, "Completion ended with directive: ") ||
		strings.Count(text, "\n") != 1 {
		t.Errorf("%v prints %q", words, text)
	}
	return strings.Join(strings.Fields(out.String()), " ")
}

func TestComplete(t *testing.T) {
	dir := commandstest.Applied(t, commandstest.Pods)
	work := t.TempDir()
	t.Chdir(work)
	for name, text := range map[string]string{
		"help.yaml":        commandstest.Pods,
		"notes.txt":        "",
		"manifests/a.json": "",
		"manifests/b.yml":  "",
		"manifests/c.md":   "",
		".hidden/x":        "",
	} {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	// A number after the words is cobra's directive: 2 is no space, 4 no files, 8 files with these extensions, 16
	// directories.
	for words, want := range map[string]string{
		"logs he":                         "hello help help.yaml :4",
		"logs hello w":                    "web worker :4",
		"logs hello ":                     "fetch web worker :4",
		"logs hello web ":                 ":4",
		"logs ./help.yaml c":              "core :4",
		"logs absent ":                    ":4",
		"logs - ":                         ":4",
		"logs hello -c f":                 "fetch :4",
		"probe -c ":                       "fetch web worker app :4",
		"probe --filename help.yaml -c c": "core :4",
		"get ":                            "hello help system/dns help.yaml manifests/ :4",
		"get hello he":                    "help help.yaml :4",
		"get s":                           "system/dns secrets services statefulsets :4",
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
		"get -o j":                        "json jsonpath= jsonpath-file= :4",
		"get -o cu":                       "custom-columns= custom-columns-file= :4",
		"get -o jsonpath-":                "jsonpath-file= :6",
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

// TestCompletionIgnoresBrokenFiles checks that completion offers nothing if files are broken or unreadable.
func TestCompletionIgnoresBrokenFiles(t *testing.T) {
	t.Chdir(t.TempDir())
	dir := commandstest.Applied(t, commandstest.Pods)
	checkpoints, err := filepath.Glob(filepath.Join(dir, "pods", "*", "checkpoint.json"))
	if err != nil || len(checkpoints) != 3 {
		t.Fatal(checkpoints, err)
	}
	if err := os.WriteFile(checkpoints[0], []byte("{half"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := complete(t, dir, "get", "-n", "none", ""); len(strings.Fields(got)) != 3 {
		t.Errorf("beside a broken checkpoint: %s", got)
	}
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	for _, absent := range []string{dir, filepath.Join(dir, "none"), checkpoints[0]} {
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

// TestCompletionUsesNoNetwork checks that completion fetches nothing from the network.
func TestCompletionUsesNoNetwork(t *testing.T) {
	asked := false
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked = true }))
	t.Cleanup(server.Close)
	if got := complete(t, t.TempDir(), "logs", server.URL+"/pod.yaml", ""); got != ":4" || asked {
		t.Errorf("%s, the server was asked: %v", got, asked)
	}
}

// TestEverythingCompletes checks that the arguments and flags of every command have a completion, or explicitly none.
func TestEverythingCompletes(t *testing.T) {
	dir := commandstest.Applied(t, commandstest.Pods)
	t.Chdir(t.TempDir())
	root := commands.New(&commands.Env{Getenv: func(string) string { return "" }})
	completion.Of(&config.Flags{}).Flags(root)
	commandstest.Walk(root, func(cmd *cobra.Command) {
		if strings.Contains(cmd.Use, "MANIFEST") || strings.Contains(cmd.Use, "POD") {
			words := append(strings.Fields(cmd.CommandPath())[1:], "")
			if complete(t, dir, words...) == ":4" {
				t.Errorf("%s: give it a ValidArgsFunction, see complete.go", cmd.CommandPath())
			}
		}
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if c, ok := f.Value.(*flags.Choice); ok {
				how, _ := cmd.GetFlagCompletionFunc(f.Name)
				if words, _ := how(cmd, nil, ""); len(words) == 0 || words[0] != c.Words()[0] {
					t.Errorf("%s --%s completes to %v", cmd.CommandPath(), f.Name, words)
				}
			}
		})
	})
}

// TestPorts checks that the ports of a pod's containers follow the pod, by name if they have one.
func TestPorts(t *testing.T) {
	dir := commandstest.Applied(t, `{apiVersion: v1, kind: Pod, metadata: {name: web}, spec: {containers: [
  {name: a, image: i, ports: [{containerPort: 80, name: http}, {containerPort: 9090}]}]}}`)
	for typed, want := range map[string]string{
		"": "http 9090 :4", "h": "http :4", "8080:": "8080:http 8080:9090 :4", ":9": ":9090 :4", "x": ":4",
	} {
		if got := complete(t, dir, "port-forward", "web", typed); got != want {
			t.Errorf("%q: %s", typed, got)
		}
	}
	if got := complete(t, dir, "port-forward", "web", "http", ""); got != "9090 :4" {
		t.Error(got)
	}
}

// TestCompleteKinds checks that the stored objects of a kind in the namespace follow the kind.
func TestCompleteKinds(t *testing.T) {
	dir := commandstest.Applied(t, commandstest.Pods)
	store := state.Layout{Root: dir}.Objects()
	for _, key := range []state.ObjectKey{
		{Namespace: "default", Kind: "ConfigMap", Name: "settings"},
		{Namespace: "default", Kind: "Secret", Name: "login"},
		{Namespace: "other", Kind: "ConfigMap", Name: "far"},
	} {
		if err := store.Write(key, []byte("{}")); err != nil {
			t.Fatal(err)
		}
	}
	for words, want := range map[string]string{
		"get cm ":                 "settings :4",
		"delete secrets l":        "login :4",
		"get -n other configmap ": "far :4",
		"get cm settings ":        ":4",
		"delete con":              "configmaps :4",
		"delete configmap/":       "configmap/settings :4",
		"delete secret/l":         "secret/login :4",
		"get cm/x":                ":4",
		"get pods he":             "hello help :4",
	} {
		if got := complete(t, dir, strings.Split(words, " ")...); got != want {
			t.Errorf("%q: %q, want %q", words, got, want)
		}
	}
}
