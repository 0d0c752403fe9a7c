package lifecycle_test

import (
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/podctl/podctl/commands/exit"
)

// file writes a manifest without changes.
func (l *lab) file(name, text string) string {
	l.T().Helper()
	path := l.Path(name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		l.T().Fatal(err)
	}
	return path
}

// wants runs a command line, and compares its exit code and its output. The order of the expected texts does not
// matter. A text with ! in front must not occur.
func (l *lab) wants(code int, wantMessage []string, args ...string) string {
	l.T().Helper()
	got, stdout, stderr := l.Call(args...)
	if got != code {
		l.T().Errorf("%v: exit code %d, want %d\n%s%s", args, got, code, stdout, stderr)
	}
	for _, text := range wantMessage {
		not, ok := strings.CutPrefix(text, "!")
		if ok == strings.Contains(stdout+stderr, strings.TrimPrefix(text, "!")) {
			l.T().Errorf("%v: %q (unwanted: %v) in\n%s%s", args, strings.TrimPrefix(text, "!"), not != "" && ok, stdout,
				stderr)
		}
	}
	return stdout + stderr
}

const (
	settings  = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {greeting: hello}\n"
	password  = "apiVersion: v1\nkind: Secret\nmetadata: {name: login}\nstringData: {password: hunter2-and-more}\n"
	withStore = "  containers:\n  - name: a\n    image: i:1\n" +
		"    env: [{name: P, valueFrom: {secretKeyRef: {name: login, key: password}}}]\n" +
		"    volumeMounts: [{name: c, mountPath: /c}]\n  volumes: [{name: c, configMap: {name: settings}}]\n"
)

// TestDrawingsOfPlansWithObjects checks that plan --graph prints only the drawing, even if the manifests have
// ConfigMaps.
func TestDrawingsOfPlansWithObjects(t *testing.T) {
	l := newLab(t)
	path := l.file("all.yaml",
		settings+"---\napiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec: {containers: [{name: a, image: i:1}]}\n")
	for format, begin := range map[string]string{"dot": "digraph", "svg": "<svg"} {
		if out, _ := l.Must("plan", "--graph", format, path); !strings.HasPrefix(out, begin) {
			t.Errorf("%s:\n%s", format, out)
		}
	}
}

// TestColorsOfPlans checks that headings and totals are bold on a terminal, and that no escape sequence is printed as
// text.
func TestColorsOfPlans(t *testing.T) {
	l := newLab(t)
	path := l.file("all.yaml", settings+"---\n"+deployment(2, "i:1", ""))
	for _, args := range [][]string{{"plan"}, {"plan", "--prune", "--set", "shop"}} {
		out, _ := l.Must(append(args, "--color=always", path)...)
		if !strings.Contains(out, "\x1b[1mTotal:") || !strings.Contains(out, "\x1b[1mDeployment default/web") ||
			strings.Contains(out, `\x1b`) {
			t.Errorf("%v:\n%q", args, out)
		}
	}
}

// TestObjectsApartFromPods checks that objects in a manifest without their pods are stored, reported as kubectl reports
// them, and used by pods of other manifests.
func TestObjectsApartFromPods(t *testing.T) {
	l := newLab(t)
	web := l.Write("web", withStore)
	const missing = "Secret default/login is missing: apply a file that has it, or add it with --configmap FILE"
	l.wants(exit.NotYet, []string{"pod default/web ", "a held (CreateContainerConfigError: " + missing}, "apply", web)
	l.wants(exit.NotYet, []string{"CreateContainerConfigError: " + missing}, "apply", "--wait", web)
	both := l.file("both.yaml", settings+"---\n"+password)
	l.wants(exit.OK, []string{
		"configmap default/settings would be created", "secret default/login would be created", "Pod default/web",
		"!hunter2",
	}, "plan", both)
	l.wants(exit.OK, []string{
		"configmap default/settings created\n", "secret default/login created\n",
		"note: configmap default/settings: used from the next apply of pod default/web",
	}, "apply", both)
	l.wants(exit.OK, []string{"configmap default/settings unchanged\n", "secret default/login unchanged\n", "!note:"},
		"apply", both)
	l.wants(exit.OK, []string{"!missing"}, "plan", web)
	l.wants(exit.OK, []string{"pod default/web"}, "apply", "--all")
	l.wants(exit.OK, []string{"No changes"}, "plan", "web")

	changed := l.file("settings.yaml", strings.Replace(settings, "hello", "good day", 1))
	l.wants(exit.Pending, []string{
		"configmap default/settings would be configured: data.greeting\n      data.greeting: hello -> good day\n",
		"volume c  update in place", "!replace",
	}, "plan", "--exit-code", changed)
	lines := l.file("lines.yaml", strings.Replace(settings, "hello", `"hello\nall"`, 1))
	l.wants(exit.OK, []string{"data.greeting:\n", "\x1b[32m+ all\x1b[0m\n"}, "plan", "--color=always", lines)
	l.wants(exit.OK, []string{`"before": "hello"`, `"after": "good day"`}, "plan", "-o", "json", changed)
	l.wants(exit.OK, []string{"No changes"}, "plan", "web")
	l.wants(exit.OK, []string{"configmap default/settings configured\n"}, "apply", changed)
	for _, target := range []string{"web", web} {
		l.wants(exit.Pending, []string{"volume c  update in place", "!replace"}, "plan", "--exit-code", target)
	}
	l.wants(exit.OK, nil, "apply", "--all")
	l.wants(exit.OK, []string{"No changes"}, "plan", web)

	rotated := l.file("login.yaml", strings.Replace(password, "hunter2-and-more", "swordfish-too", 1))
	l.wants(exit.OK, []string{
		"secret default/login would be configured: data.password", "replace", "!hunter2", "!swordfish",
	}, "plan", rotated)
	l.wants(exit.OK, []string{`"kind": "PlanList"`, `"objects"`, `"outcome": "configured"`, "!swordfish", "!hunter2"},
		"plan", "-o", "json", rotated)

	l.wants(exit.OK, []string{
		"configmap default/settings deleted\n", "note: configmap default/settings is used by pod default/web",
	}, "delete", "cm/settings")
	l.wants(exit.Error, []string{"no configmap default/settings is stored here"}, "delete", "cm", "settings")
	l.wants(exit.OK, []string{"ConfigMap default/settings, which volume c names, is missing"}, "plan", "web")
	l.wants(exit.OK, []string{"!settings"}, "delete", "--ignore-not-found", "cm", "settings")
	l.wants(exit.Error, []string{"cannot be used with names"}, "delete", "-l", "a=b", "cm/settings")
	l.wants(exit.OK, []string{"!settings", "!login"}, "delete", "-l", "a=b", "-f", both)
	l.wants(exit.OK, []string{"configmap default/settings not found", "secret default/login deleted"}, "delete", "-f",
		both)
}

// TestOwnObjectsWin checks that objects from --configmap take precedence over stored ones and stay with the pod.
// Objects of the manifest are stored.
func TestOwnObjectsWin(t *testing.T) {
	l := newLab(t)
	const pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\n" +
		"spec: {containers: [{name: a, image: 'i:1', envFrom: [{configMapRef: {name: settings}}]}]}\n"
	web := l.file("web.yaml", pod)
	stored := l.file("settings.yaml", settings)
	other := l.file("other.yaml", strings.Replace(settings, "hello", "good day", 1))
	own := l.file("own.yaml", pod+"---\n"+strings.Replace(settings, "hello", "own", 1))

	l.wants(exit.OK, []string{"unresolved: "}, "validate", web)
	l.wants(exit.OK, []string{"!unresolved"}, "validate", "--configmap", other, web)
	text := l.wants(exit.OK, []string{"good day"}, "render", "--cri", "--configmap", other, web)
	if strings.Contains(text, "hello") {
		t.Error(text)
	}
	l.wants(exit.OK, []string{"configmap default/settings created"}, "apply", stored)
	l.wants(exit.OK, []string{"!unresolved"}, "validate", web)
	l.wants(exit.OK, []string{"hello"}, "render", "--cri", web)
	l.wants(exit.OK, []string{
		"configmap default/settings would be configured: data.greeting\n      data.greeting: hello -> own\n",
		"not created yet", "!uses this one",
	}, "plan", own)
	l.wants(exit.OK, []string{"pod default/web uses this one, not the stored ConfigMap of that name"}, "apply",
		"--configmap", other, web)
	l.wants(exit.OK, []string{"No changes"}, "plan", "web")
	l.wants(exit.OK, []string{"replace", "hello"}, "plan", web)
	l.wants(exit.OK, []string{"!Pod default/web"}, "plan",
		l.file("third.yaml", strings.Replace(settings, "hello", "third", 1)))

	l.wants(exit.Error, []string{"--configmap needs the manifests"}, "plan", "--configmap", other, "web")
	l.wants(exit.Error, []string{"--all cannot be used"}, "apply", "--all", "--configmap", other)
	l.wants(exit.Refused, []string{"Pod is not accepted with --configmap"}, "apply", "--configmap", own,
		l.file("b.yaml", strings.Replace(pod, "web", "b", 1)))
	l.wants(exit.Refused, []string{"is given twice"}, "apply", "--configmap", other, own)
	l.wants(exit.OK, []string{"configmap other/settings created"}, "apply", "-n", "other", stored)
	there := l.file("there.yaml", strings.Replace(settings, "{name", "{namespace: there, name", 1))
	l.wants(exit.Error, []string{"configmap there/settings in the manifest is not in the namespace other"}, "apply",
		"-n", "other", there)
	l.wants(exit.Error, []string{"--save saves plans of pods"}, "plan", "--save", l.Path("p.json"), stored)
}

// TestObjectsStayInTheirNamespace checks that a pod cannot use an object of another namespace.
func TestObjectsStayInTheirNamespace(t *testing.T) {
	l := newLab(t)
	web := l.Write("web", withStore)
	l.wants(exit.OK, nil, "apply", l.file("other.yaml",
		strings.ReplaceAll(settings+"---\n"+password, "metadata: {", "metadata: {namespace: other, ")))
	l.wants(exit.NotYet, []string{"Secret default/login is missing"}, "apply", web)
	l.wants(exit.NotYet, []string{"ConfigMap default/settings, which volume c names, is missing"}, "apply",
		"--configmap", l.file("login.yaml", password), web)
}

// TestContainerWithMissingReference checks that containers without missing references start, and that the exit code
// reports the missing object.
func TestContainerWithMissingReference(t *testing.T) {
	l := newLab(t)
	lacks := "    envFrom: [{configMapRef: {name: none}}]\n"
	l.wants(exit.NotYet, []string{"applied: 2 started", "ConfigMap default/none is missing"}, "apply",
		l.Write("two", "  containers:\n  - name: a\n    image: i:1\n  - name: b\n    image: i:1\n"+lacks))
	l.wants(exit.NotYet, []string{"ConfigMap default/none is missing"}, "apply",
		l.Write("one", "  containers:\n  - name: b\n    image: i:1\n"+lacks))
	l.wants(exit.OK, nil, "apply", l.Write("optional",
		"  containers:\n  - name: b\n    image: i:1\n    envFrom: [{configMapRef: {name: none, optional: true}}]\n"))
	l.wants(exit.OK, nil, "apply", l.file("none.yaml", strings.Replace(settings, "settings", "none", 1)))
	l.wants(exit.OK, []string{"replace"}, "plan", "optional")
	l.wants(exit.OK, []string{"start"}, "plan", "one")
}

// TestRefusedObjects checks that changes which the API server refuses are refused, and that a Secret in podctl's own
// output is refused.
func TestRefusedObjects(t *testing.T) {
	l := newLab(t)
	frozen := settings + "immutable: true\n"
	l.wants(exit.OK, []string{"created"}, "apply", l.file("a.yaml", frozen+"---\n"+password))
	l.wants(exit.Refused, []string{
		"configmap default/settings: data.greeting of an immutable ConfigMap cannot change: " +
			"delete it and apply it again",
	},
		"apply", l.file("b.yaml", strings.Replace(frozen, "hello", "x", 1)))
	l.wants(exit.Refused, []string{"secret default/login: its type cannot change"}, "apply",
		l.file("c.yaml", password+"type: example.com/x\n"))
	printed := l.wants(exit.OK, []string{"(secret)", "!hunter2"}, "get", "secret/login", "-o", "yaml")
	l.wants(exit.Refused, []string{"the value of key password is the placeholder that podctl prints"}, "apply",
		l.file("d.yaml", printed))
}

// TestSavedPlanWithObjects checks that a saved plan includes the objects of its pods, and that a plan which is out of
// date stores none.
func TestSavedPlanWithObjects(t *testing.T) {
	l := newLab(t)
	const pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\n" +
		"spec: {containers: [{name: a, image: 'i:1', envFrom: [{configMapRef: {name: settings}}]}]}\n"
	both, saved := l.file("both.yaml", settings+"---\n"+pod), l.Path("p.json")
	l.wants(exit.OK, nil, "plan", "--save", saved, both)
	edited := l.file("edited.yaml", strings.Replace(settings, "hello", "good day", 1)+"---\n"+pod)
	l.wants(exit.Error, []string{"is out of date", "manifest: configMaps.settings.data.greeting"}, "apply", "--plan",
		saved, edited)
	l.wants(exit.Error, []string{"no configmap default/settings"}, "get", "cm", "settings")
	text, err := os.ReadFile(saved)
	if err != nil {
		t.Fatal(err)
	}
	pipe := l.Path("pipe")
	if err = unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	written := make(chan error, 1)
	go func() { written <- os.WriteFile(pipe, text, 0o600) }()
	// A pipe can be read only once.
	l.wants(exit.OK, []string{"configmap default/settings created", "pod default/web"}, "apply", "--plan", pipe, both)
	if err = <-written; err != nil {
		t.Error(err)
	}
	empty := l.file("empty.json", `{"apiVersion":"podctl.io/v1alpha1","kind":"PlanList"}`)
	l.wants(exit.Error, []string{"is not in the saved plan"}, "apply", "--plan", empty, l.file("pod.yaml", pod))
	l.wants(exit.Error, []string{"apply configmap default/other separately"}, "apply", "--plan", saved, both,
		l.file("other.yaml", strings.Replace(settings, "settings", "other", 1)))
}

// TestRolloutOfAnEnvironment checks that pods of a Deployment get a changed environment value through the rollout, not
// all at once. They get a changed volume in their next pass.
func TestRolloutOfAnEnvironment(t *testing.T) {
	l := newLab(t)
	const web = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec:\n  replicas: 2\n" +
		"  selector: {matchLabels: {app: web}}\n" +
		"  template:\n    metadata: {labels: {app: web}}\n    spec:\n      volumes: [{name: c, configMap: {name: settings}}]\n" +
		"      containers: [{name: a, image: 'i:1', env: [{name: G, valueFrom: {configMapKeyRef: {name: settings, " +
		"key: greeting}}}], volumeMounts: [{name: c, mountPath: /c}]}]\n"
	l.wants(exit.OK, nil, "apply", l.file("all.yaml", settings+"---\n"+web))
	changed := l.file("changed.yaml", strings.Replace(settings, "hello", "good day", 1))
	l.wants(exit.OK, []string{
		"Deployment default/web", "Pod default/web-2", "deployment default/web: Pods: 1 to create",
	}, "plan", changed)
	l.wants(exit.OK, []string{"used from the next apply of deployment default/web\n"}, "apply", changed)
	l.wants(exit.OK, []string{"No changes"}, "plan", "web-0")
	l.wants(exit.OK, []string{"configmap default/settings configured", "!used from the next apply"}, "apply",
		l.file("both.yaml", strings.Replace(settings, "hello", "good day, too: value", 1)+"---\n"+web))
	more := l.file("more.yaml", strings.Replace(settings, "hello", "hello, more: value", 1))
	l.wants(exit.OK, nil, "apply", more)
	l.wants(exit.OK, []string{"volume c  update in place", "!replace"}, "plan", "web-0")
	l.wants(exit.OK, []string{"1 ", "!2 "}, "rollout", "history", "deployment/web")
}

// TestPersistentVolumes checks that a pod mounts the path of the PersistentVolume to which its claim is bound, also if
// it is applied alone later.
func TestPersistentVolumes(t *testing.T) {
	l := newLab(t)
	const volume = "apiVersion: v1\nkind: PersistentVolume\nmetadata: {name: disk}\n" +
		"spec: {capacity: {storage: 2Gi}, accessModes: [ReadWriteOnce], hostPath: {path: /srv/disk}}\n---\n"
	const claim = "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data}\n" +
		"spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}\n---\n"
	const pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: db}\n" +
		"spec: {containers: [{name: a, image: 'i:1', volumeMounts: [{name: d, mountPath: /d}]}], " +
		"volumes: [{name: d, persistentVolumeClaim: {claimName: data}}]}\n"
	all, alone := l.file("all.yaml", volume+claim+pod), l.file("db.yaml", pod)
	l.wants(exit.OK, []string{"/srv/disk"}, "render", "--cri", all)
	l.wants(exit.OK, []string{"persistentvolumeclaim default/data created"}, "apply", all)
	l.wants(exit.OK, []string{"No changes"}, "plan", alone)
	l.wants(exit.OK, []string{"Bound", "disk (host path /srv/disk)"}, "describe", "pvc/data")
	l.wants(exit.OK, []string{"claim data, bound to host path /srv/disk"}, "describe", "db")
	moved := l.file("moved.yaml", strings.Replace(volume, "/srv/disk", "/srv/other", 1)+claim)
	l.wants(exit.OK, []string{"volumes.d: hostPath /srv/disk -> hostPath /srv/other"}, "plan", moved)
}

// TestSelectedPodsKeepTheirObjects checks that apply with a selector stores the objects that a selected pod names, and
// that delete leaves them.
func TestSelectedPodsKeepTheirObjects(t *testing.T) {
	l := newLab(t)
	const pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: web, labels: {app: web}}\n" +
		"spec: {containers: [{name: a, image: 'i:1', envFrom: [{configMapRef: {name: settings}}]}]}\n"
	all := l.file("all.yaml", settings+"---\n"+strings.Replace(settings, "settings", "other", 1)+"---\n"+pod)
	l.wants(exit.OK, []string{"configmap default/settings created", "!default/other", "!missing"}, "apply", "-l",
		"app=web", "-f", all)
	l.wants(exit.OK, []string{"!configmap default/settings deleted"}, "delete", "-l", "app=web", "-f", all)
	l.wants(exit.OK, []string{"settings"}, "get", "cm")
}

// TestObjectsOfAPodsManifestAreStored checks that objects of a pod's manifest are stored. Every pod that names one
// follows it, and delete -f removes them.
func TestObjectsOfAPodsManifestAreStored(t *testing.T) {
	l := newLab(t)
	const pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\n" +
		"spec: {containers: [{name: a, image: 'i:1', envFrom: [{configMapRef: {name: settings}}]}]}\n"
	both := l.file("both.yaml", settings+"---\n"+pod)
	l.wants(exit.OK, []string{"configmap default/settings would be created", "!missing"}, "plan", both)
	l.wants(exit.OK, []string{"configmap default/settings created", "!missing"}, "apply", both)
	l.wants(exit.OK, []string{"No changes"}, "plan", "web")
	l.wants(exit.OK, []string{"No changes", "!missing"}, "plan", l.file("web.yaml", pod))
	l.wants(exit.OK, []string{"configmap default/settings configured"}, "apply",
		l.file("cm.yaml", strings.Replace(settings, "hello", "good day", 1)))
	l.wants(exit.OK, []string{"replace", "hello", "good day"}, "plan", "web")
	l.wants(exit.OK, []string{"configmap default/settings deleted"}, "delete", "-f", both)
	l.wants(exit.Error, []string{"no configmap default/settings"}, "get", "cm", "settings")
}
