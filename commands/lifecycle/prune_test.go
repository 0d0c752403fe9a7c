package lifecycle_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/podctl/podctl/commands/exit"
	"github.com/podctl/podctl/runtime/runtimetest"
	"github.com/podctl/podctl/runtime/state"
)

// named is a pod with a label.
func named(name, label string) string {
	return "---\napiVersion: v1\nkind: Pod\nmetadata: {name: " + name + ", labels: {app: " + label + "}}\n" +
		"spec: {terminationGracePeriodSeconds: 0, containers: [{name: a, image: 'i:1'}]}\n"
}

// object is an object with a label, and with data if it is a ConfigMap.
func object(kind, name, label string) string {
	return "---\napiVersion: v1\nkind: " + kind + "\nmetadata: {name: " + name + ", labels: {app: " + label + "}}\n"
}

func claim(name, label string) string {
	return object("PersistentVolumeClaim", name, label) +
		"spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}\n"
}

// everything lists the content of the lab by kind and name.
func everything(l *lab) string {
	pods, _ := l.Must("get", "pods", "-A", "-o", "name")
	workloads, _ := l.Must("get", "deployments", "-A", "-o", "name")
	objects, _ := l.Must("get", "configmaps", "-A", "-o", "name")
	secrets, _ := l.Must("get", "secrets", "-A", "-o", "name")
	claims, _ := l.Must("get", "pvc", "-A", "-o", "name")
	return strings.Join(strings.Fields(pods+workloads+objects+secrets+claims), " ")
}

// TestPruneSet checks that objects which left the manifests of their set are deleted, as plan shows. Objects of other
// sets or of none stay, and so do claims with their data.
func TestPruneSet(t *testing.T) {
	l := newLab(t)
	l.Must("apply", written(l, "other", named("mine", "web")+object("ConfigMap", "mine", "web")))
	l.Must("apply", "--set", "db", written(l, "db", named("db", "web")))
	all := written(l, "all", deployment(2, "i:1", "")+named("one", "web")+named("two", "web")+
		object("ConfigMap", "conf", "web")+object("Secret", "key", "web")+claim("data", "web"))
	l.Must("apply", "--wait", "--prune", "--set", "web", all)
	before := everything(l)
	less := written(l, "less", named("one", "web"))
	stdout, stderr := l.Must("plan", "--prune", "--set", "web", less)
	for _, want := range []string{
		"\ndeployment default/web would be pruned\n", "\npod default/two would be pruned\n",
		"\npod default/web-0 would be pruned\n", "\npod default/web-1 would be pruned\n",
		"\nconfigmap default/conf would be pruned\n", "\nsecret default/key would be pruned\n",
		"Prune: 6 objects not in the manifests.\n", "Pod default/two ·",
	} {
		if !strings.Contains(stdout, want) {
			t.Errorf("plan: want %q:\n%s", want, stdout)
		}
	}
	if !strings.Contains(stderr,
		"persistentvolumeclaim default/data is no longer in the manifests; podctl keeps it and its data") {
		t.Errorf("plan: %s", stderr)
	}
	if code, _, _ := l.Call("plan", "--exit-code", "--prune", "--set", "web", less); code != exit.Pending {
		t.Errorf("plan --exit-code: %d", code)
	}
	if code, _, _ := l.Call("diff", "--prune", "--set", "web", less); code != 1 {
		t.Errorf("diff: %d", code)
	}
	stdout, _ = l.Must("apply", "--dry-run", "--prune", "--set", "web", less)
	if !strings.Contains(stdout, "pod default/two would be pruned") {
		t.Errorf("dry run: %s", stdout)
	}
	if after := everything(l); after != before {
		t.Fatalf("plan changed %s to %s", before, after)
	}
	stdout, stderr = l.Must("apply", "--prune", "--set", "web", less)
	for _, want := range []string{
		"deployment default/web pruned\n", "pod default/two deleted\n", "pod default/web-1 deleted\n",
		"configmap default/conf pruned\n", "secret default/key pruned\n",
	} {
		if !strings.Contains(stdout, want) {
			t.Errorf("apply: want %q:\n%s%s", want, stdout, stderr)
		}
	}
	if after := everything(l); after != "pod/db pod/mine pod/one configmap/mine persistentvolumeclaim/data" {
		t.Errorf("left: %s", after)
	}
	if code, stdout, _ := l.Call("plan", "--exit-code", "--prune", "--set", "web", less); code != exit.OK ||
		!strings.Contains(stdout, "Prune: nothing.\n") {
		t.Errorf("plan afterwards: %d %s", code, stdout)
	}
}

// TestSetDoesNotRestart checks that a set is stored with its members and restarts nothing. It survives when podctl
// applies its own copies, and ends when an object is applied without it.
func TestSetDoesNotRestart(t *testing.T) {
	l := newLab(t)
	file := written(l, "web", deployment(1, "i:1", "")+named("one", "web")+object("ConfigMap", "conf", "web"))
	l.Must("apply", "--wait", file)
	ids, _ := l.Must("get", "-o", "jsonpath={.items[*].status.containerStatuses[*].containerID}")
	if code, stdout, _ := l.Call("plan", "--exit-code", "--set", "web", file); code != exit.OK {
		t.Errorf("plan: %d %s", code, stdout)
	}
	stdout, _ := l.Must("apply", "--set", "web", file)
	if !strings.Contains(stdout, "configmap default/conf unchanged") ||
		!strings.Contains(stdout, "deployment default/web unchanged") {
		t.Errorf("apply: %s", stdout)
	}
	l.Must("apply", "--all")
	l.Must("scale", "--replicas=2", "deployment/web", "--wait")
	if stdout, _ := l.Must("get", "-A", "-o", "yaml"); strings.Contains(stdout, "podctl.io/set") {
		t.Errorf("pods have the set annotation: %s", stdout)
	}
	if stdout, _ := l.Must("get", "configmap", "conf", "-o", "yaml"); strings.Contains(stdout, "podctl.io/set") {
		t.Errorf("the ConfigMap has the set annotation: %s", stdout)
	}
	after, _ := l.Must("get", "-o", "jsonpath={.items[*].status.containerStatuses[*].containerID}")
	if !strings.Contains(after, strings.Fields(ids)[0]) || !strings.Contains(after, strings.Fields(ids)[1]) {
		t.Errorf("containers %s became %s", ids, after)
	}
	if stdout, _ := l.Must("describe", "one"); !strings.Contains(stdout, "default/web\n") {
		t.Errorf("describe: %s", stdout)
	}
	none := written(l, "none", "apiVersion: v1\nkind: List\nitems: []\n")
	if stdout, _ := l.Must("plan", "--prune", "--set", "web", none); !strings.Contains(stdout, "Prune: 5 objects") {
		t.Errorf("plan: %s", stdout)
	}
	// The set of another namespace is a different set, even with the same name.
	if stdout, _ := l.Must("plan", "-n", "other", "--prune", "--set", "web", none); !strings.Contains(stdout, "Prune: nothing.") {
		t.Errorf("plan in another namespace: %s", stdout)
	}
	_, stderr := l.Must("apply", "--set", "new", written(l, "one", named("one", "web")))
	if !strings.Contains(stderr, "pod default/one moved from the set default/web to the set default/new") {
		t.Errorf("a move: %s", stderr)
	}
	l.Must("apply", written(l, "conf", object("ConfigMap", "conf", "web")))
	l.Must("apply", "--prune", "--set", "web", none)
	if after := everything(l); after != "pod/one configmap/conf" {
		t.Errorf("left: %s", after)
	}
}

// TestPruneLabels checks that a selector prunes only objects with the labels, in the namespaces of the manifests. An
// object in the manifests stays even if its labels differ.
func TestPruneLabels(t *testing.T) {
	l := newLab(t)
	l.Must("apply", written(l, "all", named("one", "web")+named("two", "web")+named("three", "db")+named("four", "web")+
		object("ConfigMap", "conf", "web")))
	l.Must("apply", "-n", "other", written(l, "elsewhere", named("five", "web")))
	less := written(l, "less", named("one", "web")+named("four", "db"))
	stdout, stderr := l.Must("apply", "--prune", "-l", "app=web", less)
	if !strings.Contains(stdout, "pod default/two deleted") ||
		!strings.Contains(stdout, "configmap default/conf pruned") ||
		!strings.Contains(stderr, "pod default/four is not applied: it does not have the labels app=web") {
		t.Errorf("apply: %s%s", stdout, stderr)
	}
	if after := everything(l); after != "pod/four pod/one pod/three pod/five" {
		t.Errorf("left: %s", after)
	}
	code, _, stderr := l.Call("apply", "--prune", "-l", "app=db", written(l, "web", named("one", "web")))
	if code != exit.Error || !strings.Contains(stderr, "no object in the manifests has the labels app=db") ||
		!strings.Contains(everything(l), "pod/three") {
		t.Errorf("other labels: %d %s", code, stderr)
	}
}

// TestPruneRefused checks that --prune needs a set and manifests, and that an empty input is not a manifest.
func TestPruneRefused(t *testing.T) {
	l := newLab(t)
	file := written(l, "one", named("one", "web"))
	l.Must("apply", "--set", "web", file)
	empty, bad := written(l, "empty", "# nothing\n---\n"), written(l, "bad", named("one", "web")+"---\nkind: Pod\n")
	for _, args := range [][]string{
		{"apply", "--prune", file},
		{"plan", "--prune", file},
		{"apply", "--prune", "-l", "app=web", "--set", "web", file},
		{"apply", "--all", "--prune", "--set", "web"},
		{"apply", "--prune", "--set", "Web", file},
		{"apply", "--prune", "--set", "../web", file},
		{"plan", "--prune", "--set", "web", "one"},
		{"plan", "--prune", "--set", "web"},
		{"apply", "--prune", "--set", "web", empty},
		{"apply", "--prune", "--set", "web", bad},
		{"apply", "--prune", "--set", "web", "-f", l.Path("none")},
		{"plan", "--prune", "--set", "web", "--save", l.Path("plan"), file},
		{"apply", "--prune", "--set", "web", "--plan", l.Path("plan"), file},
	} {
		if code, _, stderr := l.Call(args...); code != exit.Error && code != exit.Refused || stderr == "" {
			t.Errorf("%v: %d %s", args, code, stderr)
		}
	}
	if after := everything(l); after != "pod/one" {
		t.Errorf("left: %s", after)
	}
	// If something cannot be applied, nothing is pruned.
	l.Fail(runtimetest.Fault{Method: "PullImage", Times: 9, Err: errors.New("no such image")})
	broken := written(l, "broken", strings.ReplaceAll(named("two", "web"), "i:1", "absent:1"))
	if code, stdout, stderr := l.Call("apply", "--prune", "--set", "web", broken); code == exit.OK ||
		!strings.Contains(stderr, "nothing was pruned") || !strings.Contains(everything(l), "pod/one") {
		t.Errorf("a failure: %d %s%s", code, stdout, stderr)
	}
}

// TestPruneLeavesOthers checks that --prune never deletes pods from a source of the agent, or pods of workloads that
// stay, whatever their labels are.
func TestPruneLeavesOthers(t *testing.T) {
	l := newLab(t)
	file := written(l, "web", deployment(1, "i:1", ""))
	l.Must("apply", "--wait", "--set", "web", file)
	l.Must("apply", written(l, "static", named("static", "web")+named("gone", "web")))
	layout := state.Layout{Root: l.Path("state"), LogRoot: l.Path("logs")}
	applied, _, err := state.Applied(layout)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range applied {
		if p.Desired.Pod.Name == "static" {
			p.Checkpoint.Applied.Owner = "file"
			if err := layout.Pod(p.Desired.Pod.UID).Checkpoint().Write(p.Checkpoint); err != nil {
				t.Fatal(err)
			}
		}
	}
	l.Must("apply", "--prune", "-l", "app=web", file)
	if after := everything(l); after != "pod/static pod/web-0 deployment.apps/web" &&
		after != "pod/static pod/web-0 deployment/web" {
		t.Errorf("left: %s", after)
	}
}

// TestPruneDocuments checks that the JSON plan has the objects to prune, and that apply prints only JSON.
func TestPruneDocuments(t *testing.T) {
	l := newLab(t)
	l.Must("apply", "--wait", "--set", "web",
		written(l, "all", deployment(1, "i:1", "")+named("one", "web")+object("ConfigMap", "conf", "web")))
	less := written(l, "less", named("one", "web"))
	stdout, _ := l.Must("plan", "--prune", "--set", "web", "-o", "json", less)
	var doc struct {
		Kind   string
		Prunes []struct {
			Object struct{ Kind, Namespace, Name string }
		}
		Items []struct{ Pod struct{ Name string } }
	}
	if err := json.Unmarshal([]byte(stdout), &doc); err != nil || doc.Kind != "PlanList" || len(doc.Prunes) != 3 ||
		doc.Prunes[0].Object.Kind != "Deployment" || len(doc.Items) != 2 || doc.Items[1].Pod.Name != "web-0" {
		t.Errorf("%v: %s", err, stdout)
	}
	stdout, _ = l.Must("apply", "--prune", "--set", "web", "-o", "json", less)
	pruned := 0
	for line := range strings.Lines(stdout) {
		var one struct{ Kind string }
		if err := json.Unmarshal([]byte(line), &one); err != nil {
			t.Errorf("%v: %s", err, line)
		}
		if one.Kind == "Prune" {
			pruned++
		}
	}
	if pruned != 2 {
		t.Errorf("%d lines about pruned objects: %s", pruned, stdout)
	}
}
