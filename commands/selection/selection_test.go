package selection

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/podctl/podctl/commands/commandstest"
	"github.com/podctl/podctl/commands/exit"
	"github.com/podctl/podctl/commands/session"
	"github.com/podctl/podctl/runtime/state"
)

// newSession returns a session in which commandstest.Pods are applied, and the buffer of its notes.
func newSession(t *testing.T, stdin string) (*session.Session, *bytes.Buffer) {
	t.Helper()
	var output bytes.Buffer
	sess := session.New(commandstest.Env(stdin, &bytes.Buffer{}, &output, time.Now))
	sess.Flags.StateDir, sess.Flags.Namespace = commandstest.Applied(t, commandstest.Pods), "default"
	sess.Flags.RuntimeEndpoint = "unix:///absent.sock"
	return sess, &output
}

const podOfSystem = "{apiVersion: v1, kind: Pod, metadata: {name: new, namespace: system, labels: {app: a}}, " +
	"spec: {containers: [{name: a, image: i}]}}"

func TestFind(t *testing.T) {
	for name, c := range map[string]struct {
		selection Selection
		args      []string
		want      string
	}{
		"no arguments":           {Selection{}, nil, "default/hello default/help"},
		"all namespaces":         {Selection{AllNamespaces: true}, nil, "default/hello default/help system/dns"},
		"labels without a match": {Selection{Labels: "app=a"}, nil, ""},
		"labels of a manifest":   {Selection{Labels: "app=a"}, []string{"-"}, "system/new"},
		"labels of no manifest":  {Selection{Labels: "app=b"}, []string{"-"}, ""},
		"a field":                {Selection{Fields: "metadata.name=help"}, nil, "default/help"},
		"two fields": {
			Selection{Fields: "metadata.name!=help,spec.restartPolicy=Always", AllNamespaces: true},
			nil,
			"default/hello system/dns",
		},
		"the status, later": {
			Selection{Fields: "status.phase=Failed", For: List}, nil, "default/hello default/help",
		},
		"a name":                  {Selection{}, []string{"help"}, "default/help"},
		"a name with a namespace": {Selection{}, []string{"system/dns"}, "system/dns"},
		"the same name twice": {
			Selection{}, []string{"help", "default/help", "hello"}, "default/help default/hello",
		},
		"a manifest":                 {Selection{}, []string{"-"}, "system/new"},
		"a file":                     {Selection{Files: []string{"-"}}, nil, "system/new"},
		"manifests come before pods": {Selection{Files: []string{"-"}}, []string{"hello"}, "system/new default/hello"},
	} {
		sess, _ := newSession(t, podOfSystem)
		found, err := c.selection.Find(t.Context(), sess, c.args)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var got []string
		for _, ref := range Refs(found.Pods) {
			got = append(got, ref.String())
		}
		if diff := cmp.Diff(c.want, strings.Join(got, " ")); diff != "" {
			t.Errorf("%s (-want +got)\n%s", name, diff)
		}
	}
}

// TestSelectorsThatAreRefused checks that contradictory selectors are refused, and selectors for fields that pods do
// not have.
func TestSelectorsThatAreRefused(t *testing.T) {
	for want, c := range map[string]struct {
		selection Selection
		args      []string
	}{
		"cannot be used with names":                  {Selection{Labels: "app=a"}, []string{"help"}},
		"--field-selector cannot be used with manif": {Selection{Fields: "metadata.name=a"}, []string{"-"}},
		"--all cannot be used":                       {Selection{All: true}, []string{"help"}},
		"--selector:":                                {Selection{Labels: "a=b=c"}, nil},
		"--field-selector:":                          {Selection{Fields: "metadata.name"}, nil},
		`the field "metadata.uid", only by metadata.name, metadata.namespace, spec.hostNetwork`: {
			Selection{Fields: "metadata.uid=a"}, nil,
		},
	} {
		sess, _ := newSession(t, podOfSystem)
		_, err := c.selection.Find(t.Context(), sess, c.args)
		if usage := (*exit.UsageError)(nil); !errors.As(err, &usage) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

// TestFindSome checks that Find returns the pods that exist together with the error about the others.
func TestFindSome(t *testing.T) {
	sess, _ := newSession(t, "")
	found, err := Selection{}.Find(t.Context(), sess, []string{"hello", "absent"})
	if absent := (*state.NotFoundError)(nil); len(found.Pods) != 1 || !errors.As(err, &absent) ||
		absent.Name != "default/absent" {
		t.Errorf("%v %v", found.Pods, err)
	}
}

// TestNamespaceFlag checks that a manifest of another namespace than that of the command line is an error.
func TestNamespaceFlag(t *testing.T) {
	sess, _ := newSession(t, podOfSystem)
	sess.Flags.NamespaceGiven = true
	_, err := Selection{}.Find(t.Context(), sess, []string{"-"})
	if usage := (*exit.UsageError)(nil); !errors.As(err, &usage) || !strings.Contains(err.Error(), "system/new") {
		t.Error(err)
	}
}

// TestChoose checks that the container is the named one, the pod's default, or the first one.
func TestChoose(t *testing.T) {
	sess, output := newSession(t, "")
	d, err := One(t.Context(), sess, Work, "hello")
	if err != nil {
		t.Fatal(err)
	}
	choose := func(c Container) string {
		t.Helper()
		name, err := c.Choose(sess.IO, d)
		if err != nil {
			return err.Error()
		}
		return name
	}
	if got := choose(Container{}); got != "web" ||
		output.String() != "Defaulted container \"web\" out of: fetch, web, worker\n" {
		t.Errorf("%s %q", got, output)
	}
	output.Reset()
	if got := choose(Container{Quiet: true}); got != "web" || output.Len() > 0 {
		t.Errorf("quiet: %s %q", got, output)
	}
	got := choose(Container{Name: "absent"})
	if got != `pod default/hello has no container "absent"; it has fetch, web, worker` {
		t.Error(got)
	}
	d.Pod.Annotations = map[string]string{defaultContainer: "worker"}
	if got := choose(Container{}); got != "worker" || output.Len() > 0 {
		t.Errorf("the pod's default one: %s %q", got, output)
	}
}

// TestRecursiveTakesDirectories checks that, with --recursive, an argument that is a directory names the directory.
func TestRecursiveTakesDirectories(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.MkdirAll("pods/below", 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("pods/below/new.yaml", []byte(podOfSystem), 0o600); err != nil {
		t.Fatal(err)
	}
	sess, _ := newSession(t, "")
	found, err := (&Selection{Recursive: true}).Find(t.Context(), sess, []string{"pods"})
	if err != nil || len(found.Pods) != 1 || found.Pods[0].Pod.Name != "new" {
		t.Errorf("%v, %v", found.Pods, err)
	}
}
