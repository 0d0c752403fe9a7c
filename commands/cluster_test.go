package commands

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podctl/podctl/commands/commandstest"
	"github.com/podctl/podctl/commands/exit"
	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/agent/api"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/state"
)

// clusterUID is the uid of the API server's pod of a cluster lab, and secondUID that of a pod with the same name.
const (
	clusterUID = "11111111-2222-4333-8444-555555555555"
	secondUID  = "99999999-2222-4333-8444-555555555555"
)

// inCluster is a lab whose runtime runs the pod a/web of an API server. The manifest of the pod is in web.yaml.
type inCluster struct {
	*lab

	manifest string
}

func newInCluster(t *testing.T) *inCluster {
	t.Helper()
	l := &inCluster{lab: newLab(t)}
	l.manifest = l.run(clusterUID, metav1.OwnerReference{
		APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web-5f", UID: "rs", Controller: new(true),
	})
	return l
}

// labeled writes a manifest of a pod in the namespace a.
func (l *inCluster) labeled(file, meta string) string {
	l.T().Helper()
	path := l.Path(file + ".yaml")
	text := "apiVersion: v1\nkind: Pod\nmetadata: {namespace: a, labels: {app: web, pod-template-hash: 5f}, " + meta + "}\n" +
		"spec: {containers: [{name: c, image: 'i:1'}, {name: d, image: 'i:1'}]}\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		l.T().Fatal(err)
	}
	return path
}

// run runs a pod a/web with a uid. That with clusterUID is one of the API server, with the given owners.
func (l *inCluster) run(uid string, owners ...metav1.OwnerReference) (manifest string) {
	l.T().Helper()
	manifest = l.labeled(uid[:4], "name: web, uid: "+uid)
	l.Must("apply", manifest)
	if uid == secondUID {
		return manifest
	}
	checkpoint := state.Layout{Root: l.Path("state"), LogRoot: l.Path("logs")}.Pod(model.PodRef{UID: clusterUID}.UID).Checkpoint()
	c, err := checkpoint.Read()
	if err == nil {
		c.Applied.Source, c.Applied.Owner = podspec.OwnerAPI, podspec.OwnerAPI
		c.Applied.Pod.OwnerReferences = owners
		err = checkpoint.Write(c)
	}
	if err == nil {
		// The agent of a node has read that the cluster has no Services.
		err = state.ClusterServices(state.Layout{Root: l.Path("state"), LogRoot: l.Path("logs")}).Write([]byte("{}"))
	}
	if err != nil {
		l.T().Fatal(err)
	}
	return manifest
}

// files returns the paths, sizes and contents of the state directory, without locks.
func (l *inCluster) files() string {
	l.T().Helper()
	var all []string
	err := filepath.WalkDir(l.Path("state"), func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.Contains(path, "lock") {
			return err
		}
		text, err := os.ReadFile(path)
		all = append(all, path+" "+string(text))
		return err
	})
	if err != nil {
		l.T().Fatal(err)
	}
	return strings.Join(all, "\n")
}

// changes are the runtime's calls that change pods.
func (l *inCluster) changes(since int) []string {
	return slices.DeleteFunc(slices.Clone(l.Calls()[since:]), func(call string) bool {
		return !slices.ContainsFunc([]string{"Run", "Start", "Stop", "Remove", "Create", "Update"}, func(verb string) bool {
			return strings.HasPrefix(call, verb)
		})
	})
}

// clusterCommand is what a command does with pods of the API server.
type clusterCommand struct {
	// refuses maps the command lines that the command refuses to the kubectl command in the error.
	refuses map[string]string
	// works are command lines that work. A command without lines is declared to change no object of the API server.
	works []string
}

// clusterCommands has every command. MANIFEST stands for the manifest of the pod.
func clusterCommands() map[string]clusterCommand {
	declared := clusterCommand{}
	remove, edit := "kubectl -n a delete pod web", "kubectl -n a edit pod web"
	return map[string]clusterCommand{
		"apply": {refuses: map[string]string{
			"apply a/web":                                edit,
			"apply " + clusterUID:                        edit,
			"apply --wait a/web":                         edit,
			"apply -n a --all":                           edit,
			"apply -A --all":                             edit,
			"apply -n a -l app=web --all":                edit,
			"apply MANIFEST":                             "kubectl -n a apply -f MANIFEST",
			"apply -f MANIFEST --parallel 1":             "kubectl -n a apply -f MANIFEST",
			"apply --adopt-endpoint a/web":               edit,
			"apply --ignore-backoff --pull always a/web": edit,
		}},
		"delete": {refuses: map[string]string{
			"delete a/web":                                        remove,
			"delete pod/web -n a":                                 remove,
			"delete pod web -n a":                                 remove,
			"delete " + clusterUID:                                remove,
			"delete a/web --grace-period 5":                       remove + " --grace-period=5",
			"delete a/web --force":                                remove + " --grace-period=0 --force",
			"delete a/web --dry-run":                              remove,
			"delete a/web --adopt-endpoint":                       remove,
			"delete MANIFEST":                                     remove,
			"delete -n a --all":                                   remove,
			"delete -A --all":                                     remove,
			"delete pods -n a --all":                              remove,
			"delete -n a --all --volumes":                         remove,
			"delete -n a -l app=web":                              remove,
			"delete other a/web":                                  remove,
			"delete deployment/web -n a":                          "kubectl -n a delete deployment/web",
			"delete rs/web-5f -n a":                               "kubectl -n a delete replicaset/web-5f",
			"delete -n a --field-selector " + "metadata.name=web": remove,
		}},
		"run": {refuses: map[string]string{
			"run MANIFEST":      "kubectl -n a apply -f MANIFEST",
			"run --rm MANIFEST": "kubectl -n a apply -f MANIFEST",
		}},
		"scale": {refuses: map[string]string{
			"scale --replicas=3 deployment/web -n a": "kubectl -n a scale --replicas=3 deployment/web",
		}},
		"rollout undo": {refuses: map[string]string{
			"rollout undo deployment/web -n a":                 "kubectl -n a rollout undo deployment/web",
			"rollout undo deployment/web -n a --to-revision 2": "kubectl -n a rollout undo --to-revision=2 deployment/web",
		}},
		"rollout restart": {refuses: map[string]string{
			"rollout restart deployment/web -n a": "kubectl -n a rollout restart deployment/web",
		}},
		"rollout status": {refuses: map[string]string{
			"rollout status deployment/web -n a": "kubectl -n a rollout status deployment/web",
		}},
		"rollout history": {refuses: map[string]string{
			"rollout history deployment/web -n a": "kubectl -n a rollout history deployment/web",
		}},
		"plan":     {works: []string{"plan a/web", "plan MANIFEST", "plan -A"}},
		"diff":     declared,
		"get":      {works: []string{"get a/web", "get -A -o wide", "get " + clusterUID + " -o json", "get -A --containers"}},
		"describe": {works: []string{"describe a/web"}},
		"events":   {works: []string{"events a/web", "events -A"}},
		"why":      {works: []string{"why a/web", "why a/web c -o json"}},
		"top":      {works: []string{"top -A --once"}},
		"logs":     {works: []string{"logs a/web c"}},
		"probe":    {works: []string{"probe a/web"}},
		"wait":     {works: []string{"wait --for=started a/web"}},
		"snapshot": {works: []string{"snapshot a/web"}},
		"export":   {works: []string{"export a/web"}},
		"prune":    {works: []string{"prune"}},
		"restart":  {works: []string{"restart a/web c", "restart a/web", "restart a/web d --wait=started", "restart -A --all"}},
		"debug":    {works: []string{"debug a/web --image i:1 --attach=false"}},
		"exec":     declared, "attach": declared, "cp": declared, "port-forward": declared,
		// These commands take no pods that were applied.
		"explain": declared, "validate": declared, "render": declared, "completion": declared, "version": declared,
		"doctor": declared, "image ls": declared, "image pull": declared, "image rm": declared, "image prune": declared,
		"image load": declared, "image save": declared, "image tag": declared, "image inspect": declared,
		"agent": declared, "agent status": declared, "agent reload": declared,
		// It lets the pods of the old cluster end.
		"agent join": declared,
		// It ends pods through the API server.
		"agent leave": declared,
		// A node that goes down takes its pods with it, as a machine does.
		"node up": declared, "node down": declared, "node status": declared,
	}
}

// TestCommandsAndPodsOfTheAPIServer checks that each command that would change a pod of the API server refuses it,
// changes nothing and names the kubectl command, and that the other commands work. A new command must be declared here.
func TestCommandsAndPodsOfTheAPIServer(t *testing.T) {
	known := clusterCommands()
	commandstest.Walk(New(commandstest.Env("", nil, nil, nil)), func(cmd *cobra.Command) {
		_, name, _ := strings.Cut(cmd.CommandPath(), " ")
		if _, declared := known[name]; !declared && cmd.Runnable() && name != "" && !isGroup(cmd) {
			t.Errorf("%s: declare what it does with pods of the API server", name)
		}
	})
	l := newInCluster(t)
	l.Must("apply", l.Write("other", "  containers: [{name: c, image: 'i:1'}]"))
	fill := strings.NewReplacer("MANIFEST", l.manifest)
	for _, c := range known {
		for line, kubectl := range c.refuses {
			l.refuses(strings.Fields(fill.Replace(line)), fill.Replace(kubectl))
		}
	}
	for _, c := range known {
		for _, line := range c.works {
			if code, stdout, stderr := l.Call(strings.Fields(fill.Replace(line))...); code != exit.OK {
				t.Errorf("%s: exit code %d\n%s%s", line, code, stdout, stderr)
			}
		}
	}
}

// isGroup reports whether a command only prints the help of its subcommands.
func isGroup(cmd *cobra.Command) bool { return strings.HasSuffix(cmd.Use, "COMMAND") }

// refuses checks that a command line is refused, and that it changes nothing.
func (l *inCluster) refuses(args []string, kubectl string) {
	l.T().Helper()
	want := exit.Error
	if args[0] == "run" {
		want = exit.RunFailed
	}
	before, calls := l.files(), len(l.Calls())
	code, stdout, stderr := l.Call(args...)
	if code != want || !strings.Contains(stderr, "`"+kubectl) {
		l.T().Errorf("%v: exit code %d, want %d and %q\n%s%s", args, code, want, kubectl, stdout, stderr)
	}
	if changed := l.changes(calls); len(changed) > 0 {
		l.T().Errorf("%v calls %v", args, changed)
	}
	if l.files() != before {
		l.T().Errorf("%v changes the state directory", args)
	}
}

// TestPruneKeepsPodsOfTheAPIServer checks that --prune refuses to delete a pod of the API server, and that nothing was
// applied then.
func TestPruneKeepsPodsOfTheAPIServer(t *testing.T) {
	l := &inCluster{lab: newLab(t)}
	l.run(clusterUID)
	set := l.labeled("set", "name: x")
	for _, command := range []string{"apply", "plan"} {
		l.refuses([]string{command, "-n", "a", "--prune", "-l", "app=web", set}, "kubectl -n a delete pod web")
	}
	l.Must("apply", "-n", "a", "--prune", "--set", "s", set)
}

// TestAmbiguousNames checks that each command asks for the uid if two pods have a name, and works with a uid.
func TestAmbiguousNames(t *testing.T) {
	l := newInCluster(t)
	second := l.run(secondUID)
	for _, line := range []string{
		"get a/web", "describe a/web", "plan a/web", "events a/web", "logs a/web c", "probe a/web", "wait a/web", "delete a/web",
		"delete pod web -n a", "apply a/web", "restart a/web c", "exec a/web -- ls", "cp a/web:/x .", "attach a/web", "export a/web",
		"why a/web", "debug a/web --image i:1", "port-forward a/web 80", "snapshot a/web", "top a/web --once", "wait --for=deleted a/web",
		"image pull a/web",
	} {
		code, stdout, stderr := l.Call(strings.Fields(line)...)
		for _, text := range []string{"2 pods have the name a/web", clusterUID + " (api)", secondUID + " (" + second + ")"} {
			if line != "image pull a/web" && (code == exit.OK || !strings.Contains(stderr, text)) {
				t.Errorf("%s: exit code %d, want %q\n%s%s", line, code, text, stdout, stderr)
			}
		}
	}
	for _, uid := range []string{clusterUID, secondUID, secondUID[:8]} {
		for _, line := range []string{"get", "describe", "plan", "events", "why", "probe", "restart"} {
			if code, stdout, stderr := l.Call(line, uid); code != exit.OK {
				t.Errorf("%s %s: exit code %d\n%s%s", line, uid, code, stdout, stderr)
			}
		}
	}
	l.Must("delete", secondUID)
	if stdout, _ := l.Must("get", "a/web", "-o", "jsonpath={.metadata.uid}"); stdout != clusterUID {
		t.Errorf("after the deletion of the other pod: %s", stdout)
	}
}

// TestSourceOfPods checks that pods of the API server are marked, and others are not.
func TestSourceOfPods(t *testing.T) {
	l := newInCluster(t)
	l.Must("apply", l.Write("other", "  containers: [{name: c, image: 'i:1'}]"))
	const path = `jsonpath={.items[*].metadata.annotations.kubernetes\.io/config\.source}`
	if stdout, _ := l.Must("get", "-A", "-o", path); stdout != "api" {
		t.Errorf("%q", stdout)
	}
	for namespace, want := range map[string]string{"a": "api", "": "local", "default": ""} {
		stdout, _ := l.Must("get", "-n", namespace)
		if namespace == "" {
			stdout, _ = l.Must("get", "-A", "-o", "wide")
		}
		if has := strings.Contains(stdout, "SOURCE"); has != (want != "") || !strings.Contains(stdout, want) {
			t.Errorf("namespace %q: %s", namespace, stdout)
		}
	}
	if stdout, _ := l.Must("describe", "a/web"); !strings.Contains(stdout, "api") {
		t.Error(stdout)
	}
	// A workload of podctl with the name of the pod's owner does not own it.
	code, stdout, stderr := l.Call("events", "rs/web-5f", "-n", "a")
	if code != exit.Error || strings.Contains(stdout, "Started") {
		t.Errorf("events of a workload: exit code %d\n%s%s", code, stdout, stderr)
	}
}

// TestConditionsInTheAPI checks that commands take the conditions of a pod in the API from the agent: those of other
// programs, the times of podctl's own, and the readiness gates, which are unknown without an agent.
func TestConditionsInTheAPI(t *testing.T) {
	l := newInCluster(t)
	checkpoint := state.Layout{Root: l.Path("state"), LogRoot: l.Path("logs")}.Pod(clusterUID).Checkpoint()
	c, err := checkpoint.Read()
	if err != nil {
		t.Fatal(err)
	}
	c.Applied.Pod.Generation = 3
	c.Applied.Pod.Spec.ReadinessGates = []v1.PodReadinessGate{{ConditionType: "example.com/g"}}
	if err = checkpoint.Write(c); err != nil {
		t.Fatal(err)
	}
	ready := func(want string) {
		t.Helper()
		stdout, _ := l.Must("get", "a/web", "-o", `jsonpath={.status.conditions[?(@.type=="Ready")].status}`)
		if stdout != want {
			t.Errorf("ready: %s, want %s", stdout, want)
		}
	}
	ready("Unknown")
	kept := api.Pod{PodRef: model.PodRef{Namespace: "a", Name: "web", UID: clusterUID}}
	l.ServeAgent(kept)
	ready("Unknown")
	since := metav1.Date(2026, 5, 4, 11, 0, 0, 0, time.UTC)
	for status, want := range map[v1.ConditionStatus]string{"True": "True", "False": "False", "": "False"} {
		conditions := []v1.PodCondition{
			{Type: "other", Status: v1.ConditionTrue},
			{Type: v1.PodScheduled, Status: v1.ConditionTrue, LastTransitionTime: since},
		}
		if status != "" {
			conditions = append(conditions, v1.PodCondition{Type: "example.com/g", Status: status})
		}
		kept.Conditions = conditions
		l.ServeAgent(kept)
		ready(want)
	}
	text, _ := l.Must("get", "a/web", "-o", "json")
	var pod v1.Pod
	if err = json.Unmarshal([]byte(text), &pod); err != nil {
		t.Fatal(err)
	}
	found := map[v1.PodConditionType]v1.PodCondition{}
	for _, c := range pod.Status.Conditions {
		found[c.Type] = c
	}
	scheduled := found[v1.PodScheduled]
	if pod.Status.ObservedGeneration != 3 || scheduled.ObservedGeneration != 3 || found["other"].Status != v1.ConditionTrue ||
		!scheduled.LastTransitionTime.Equal(&since) {
		t.Errorf("generation %d, %+v", pod.Status.ObservedGeneration, pod.Status.Conditions)
	}
}

// remote returns the pod of a cluster lab as the API server has it.
func (l *inCluster) remote() v1.Pod {
	l.T().Helper()
	c, err := state.Layout{Root: l.Path("state"), LogRoot: l.Path("logs")}.Pod(clusterUID).Checkpoint().Read()
	if err != nil {
		l.T().Fatal(err)
	}
	pod := *c.Applied.Pod.DeepCopy()
	return pod
}

// TestDiffOfACluster checks the exit codes and the output of diff --cluster.
func TestDiffOfACluster(t *testing.T) {
	l := newInCluster(t)
	if code, _, stderr := l.Call("diff", "--cluster"); code != 2 || !strings.Contains(stderr, "no agent is running") {
		t.Errorf("without an agent: %d %s", code, stderr)
	}
	if code, _, stderr := l.Call("diff", "--cluster", "web.yaml"); code != 2 || !strings.Contains(stderr, "takes no manifests") {
		t.Errorf("with a manifest: %d %s", code, stderr)
	}
	remote := l.remote()
	stdout, _ := l.Must("get", "a/web", "-o", "json")
	var pod v1.Pod
	if err := json.Unmarshal([]byte(stdout), &pod); err != nil {
		t.Fatal(err)
	}
	remote.Status = pod.Status
	pods := &api.ClusterPods{Node: "n", Items: []v1.Pod{remote}}
	l.ServeNode(&api.Status{}, pods)
	if code, printed, _ := l.Call("diff", "--cluster"); code != 0 || !strings.Contains(printed, "No differences") {
		t.Errorf("the same: %d %s", code, printed)
	}
	pods.Items[0].Status.Phase, pods.Stale = v1.PodPending, "refused"
	if code, printed, stderr := l.Call("diff", "--cluster"); code != 2 || printed != "" || !strings.Contains(stderr, "never got any") {
		t.Errorf("no pods are known: %d %s%s", code, printed, stderr)
	}
	pods.AsOf = time.Now()
	code, stdout, stderr := l.Call("diff", "--cluster")
	if code != 1 || !strings.Contains(stdout, "OtherStatus") || !strings.Contains(stderr, "did not return the pods: refused") {
		t.Errorf("%d %s%s", code, stdout, stderr)
	}
	pods.Items = nil
	code, stdout, _ = l.Call("diff", "--cluster", "-o", "json")
	if code != 1 || !strings.Contains(stdout, "ClusterDifferenceList") || !strings.Contains(stdout, `"kind": "OnlyHere"`) {
		t.Errorf("%d %s", code, stdout)
	}
}

// TestPlanOfANewerGeneration checks that plan and why show the newest version of a pod of the API server, in the terms
// of its object.
func TestPlanOfANewerGeneration(t *testing.T) {
	l := newInCluster(t)
	remote := l.remote()
	remote.Generation, remote.Spec.Containers[0].Image = 4, "i:2"
	if stdout, _ := l.Must("plan", "a/web"); !strings.Contains(stdout, "source api · uid "+clusterUID+" · generation 0") {
		t.Errorf("without an agent:\n%s", stdout)
	}
	l.ServeNode(&api.Status{Pods: []api.Pod{{PodRef: model.RefOf(&remote), Generation: 4}}},
		&api.ClusterPods{Node: "n", Items: []v1.Pod{remote}})
	stdout, _ := l.Must("plan", "a/web")
	if !strings.Contains(stdout, "generation 4") || !strings.Contains(stdout, "i:1 -> i:2") {
		t.Errorf("plan:\n%s", stdout)
	}
	stdout, _ = l.Must("why", "a/web", "c")
	if !strings.Contains(stdout, "generation 4, observedGeneration 0") || !strings.Contains(stdout, "i:1 -> i:2") {
		t.Errorf("why:\n%s", stdout)
	}
}
