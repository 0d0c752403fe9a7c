package inspect_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/podctl/podctl/commands/exit"
)

const stored = `apiVersion: v1
kind: ConfigMap
metadata: {name: settings, labels: {app: web}}
data: {greeting: hello, other: x}
---
apiVersion: v1
kind: Secret
metadata: {name: login}
stringData: {password: hunter2-and-more}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
---
apiVersion: v1
kind: Secret
metadata: {name: login, namespace: other}
stringData: {password: swordfish-too}
`

// age matches an AGE in seconds. On a slow machine, an object can be older than one second when it is listed.
var age = regexp.MustCompile(`\b\d+s\b`)

// TestGetKinds: get accepts kinds like kubectl, and prints no value of a Secret in any format.
func TestGetKinds(t *testing.T) {
	l := newLab(t)
	path := l.Path("stored.yaml")
	if err := os.WriteFile(path, []byte(stored), 0o600); err != nil {
		t.Fatal(err)
	}
	l.Must("apply", path)
	l.Must("apply", l.Write("web", "  containers:\n  - name: a\n    image: i:1\n    envFrom: [{configMapRef: {name: settings}}]\n"+
		"    volumeMounts: [{name: d, mountPath: /d}]\n  volumes: [{name: d, persistentVolumeClaim: {claimName: bare}}]\n"))
	for _, c := range []struct {
		args string
		want []string
	}{
		{"cm", []string{"NAME       DATA   AGE   USED BY", "settings   2      0s    web"}},
		{"ConfigMap settings", []string{"settings   2"}},
		{"secrets", []string{"NAME    TYPE     DATA   AGE   USED BY", "login   Opaque   1"}},
		{"secret -A -o name", []string{"secret/login\nsecret/login\n"}},
		{"secret other/login", []string{"login   Opaque   1"}},
		{"pvc", []string{
			"NAME   STATUS    CAPACITY   ACCESS MODES    AGE   USED BY",
			"bare   Bound                                0s", "data   Pending   1Gi        ReadWriteOnce",
		}},
		{"pvc/bare -o jsonpath={.status.phase}", []string{"Bound"}},
		{"persistentvolumeclaims data -o name", []string{"persistentvolumeclaim/data\n"}},
		{"cm/settings -o jsonpath={.data.greeting}", []string{"hello"}},
		{"cm -o json", []string{`"kind": "List"`, `"greeting": "hello"`, `"creationTimestamp": "20`}},
		{"secret/login -o yaml", []string{"stringData:\n  password: (secret)", "kind: Secret"}},
		{"secrets -o json -A", []string{`"password": "(secret)"`}},
		{"cm -l app=web -o name", []string{"configmap/settings"}},
		{"cm -l app=db", []string{"No configmaps in namespace default with labels app=db."}},
		{"cm -L app --show-labels", []string{"AGE   USED BY   APP   LABELS", "web   app=web"}},
		{
			"secrets -A -o custom-columns=N:.metadata.name,P:.stringData.password",
			[]string{"N       P\nlogin   (secret)\nlogin   (secret)\n"},
		},
		{"pvc --sort-by .status.phase -o name", []string{"persistentvolumeclaim/bare\npersistentvolumeclaim/data\n"}},
		{"pods", []string{"web    1/1"}},
		{"po -o name", []string{"pod/web\n"}},
		{"pod web -o name", []string{"pod/web\n"}},
		{"pod/web -o name", []string{"pod/web\n"}},
		{"po/web default/web -o name", []string{"pod/web\n"}},
	} {
		stdout, stderr := l.Must(append([]string{"get"}, strings.Fields(c.args)...)...)
		shown := age.ReplaceAllString(stdout+stderr, "0s")
		for _, want := range c.want {
			if !strings.Contains(shown, want) {
				t.Errorf("get %s: no %q in\n%s%s", c.args, want, stdout, stderr)
			}
		}
		if strings.Contains(stdout, "hunter2") || strings.Contains(stdout, "swordfish") ||
			strings.Contains(stdout, "aHVudGVy") {
			t.Errorf("get %s prints a value:\n%s", c.args, stdout)
		}
	}
	for args, want := range map[string]string{
		"cm none":                             "no configmap default/none is stored here",
		"cm settings none":                    "no configmap default/none is stored here",
		"cm/settings web":                     "get lists one kind at a time",
		"cm secret/login":                     "secret/login already has a kind",
		"cm -w":                               "are for pods",
		"cm ../../x":                          "cannot be used as a directory name",
		"cm settings -l a=b":                  "--selector cannot be used with names",
		"secret .. -o yaml":                   "cannot be used as a directory name",
		"pods none":                           "no pod default/none",
		"cm --field-selector metadata.name=a": "are for pods",
		"cm --sort-by .none":                  "no configmap has a field .none",
		"cm -o jsonpath={.a[":                 "-o jsonpath",
	} {
		code, stdout, stderr := l.Call(append([]string{"get"}, strings.Fields(args)...)...)
		if code != exit.Error || !strings.Contains(stderr, want) {
			t.Errorf("get %s: exit code %d\n%s%s", args, code, stdout, stderr)
		}
	}
}
