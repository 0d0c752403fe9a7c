package load

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/podctl/podctl/podspec/input"
)

const podTemplate = `
    metadata: {labels: {app: web}}
    spec:
      containers:
      - name: app
        image: registry.local/app:1
`

const deployment = `apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:` + podTemplate

// jobSpec is the spec of a Job.
const jobSpec = `
spec:
  template:
    spec:
      restartPolicy: Never
      containers:
      - {name: app, image: registry.local/app:1}
`

// withWorkloads returns a manifest that is loaded with workloads.
func withWorkloads(t *testing.T, text string) *Manifest {
	t.Helper()
	m, err := Loader{Workloads: true}.Parse(input.Source{Name: "-", Text: []byte(text)})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestWorkloads checks that every kind is accepted with its defaults, and that its template becomes a pod with the name
// of its first one.
func TestWorkloads(t *testing.T) {
	set := strings.NewReplacer("Deployment", "StatefulSet", "replicas: 3", "ordinals: {start: 4}\n  serviceName: web")
	for name, c := range map[string]struct{ text, kind, pod string }{
		"a Deployment":  {deployment, "Deployment", "web-0"},
		"a ReplicaSet":  {strings.Replace(deployment, "Deployment", "ReplicaSet", 1), "ReplicaSet", "web-0"},
		"a StatefulSet": {set.Replace(deployment), "StatefulSet", "web-4"},
		"a DaemonSet":   {strings.NewReplacer("Deployment", "DaemonSet", "  replicas: 3\n", "").Replace(deployment), "DaemonSet", "web-0"},
		"a Job":         {"apiVersion: batch/v1\nkind: Job\nmetadata: {name: work}" + jobSpec, "Job", "work-0"},
		"a CronJob": {"apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: work}\nspec:\n  schedule: '* * * * *'\n  jobTemplate:" +
			strings.ReplaceAll(jobSpec, "\n", "\n    "), "CronJob", "work-00000000-0"},
	} {
		m := withWorkloads(t, c.text)
		if m.Err() != nil || len(m.Workloads) != 1 || len(m.Pods) > 0 {
			t.Errorf("%s: %v, %d workloads, %d pods", name, m.Err(), len(m.Workloads), len(m.Pods))
			continue
		}
		w := m.Workloads[0]
		pod := w.Template.Pod
		if w.Kind() != c.kind || pod.Name != c.pod || pod.UID == "" || pod.Spec.Containers[0].TerminationMessagePath == "" {
			t.Errorf("%s: %s with the pod %s, uid %q", name, w, pod.Name, pod.UID)
		}
	}
	if w := withWorkloads(t, deployment).Workloads[0]; w.Deployment.Spec.Strategy.RollingUpdate == nil || w.Meta().UID == "" {
		t.Errorf("the Deployment has no defaults: %+v", w.Deployment)
	}
}

// TestWorkloadProblems checks that each problem is reported once, with its position in the whole document.
func TestWorkloadProblems(t *testing.T) {
	edited := func(before, after string) string { return strings.Replace(deployment, before, after, 1) }
	for name, c := range map[string]struct{ text, want string }{
		"an unknown field": {
			edited("replicas: 3", "replica: 3"),
			"-:5:3: spec.replica: unknown field; did you mean replicas?",
		},
		"an unknown field of the template": {
			edited("image:", "imag:"),
			"-:12:9: spec.template.spec.containers[0].imag: unknown field; did you mean image?",
		},
		"a wrong value": {
			edited("replicas: 3", "replicas: -1"),
			"-:5:3: spec.replicas: -1 is not valid: must be greater than or equal to 0",
		},
		"another selector": {
			edited("{app: web}}\n  template", "{app: other}}\n  template"),
			"-:8:16: spec.template.metadata.labels: " +
				"the value is not valid: `selector` does not match template `labels`",
		},
		"a wrong value of the template": {edited("name: app", "name: App"), "-:11:9: spec.template.spec.containers[0].name:"},
		"a policy of Jobs": {
			deployment + "      restartPolicy: Never\n",
			`-:13:7: spec.template.spec.restartPolicy: "Never" is not one of the allowed values: ` +
				`supported values: "Always"`,
		},
		"a path for a name": {edited("name: web", "name: ../web"), `-:3:12: metadata.name: "../web" is not valid`},
		"too long a name":   {edited("name: web", "name: "+strings.Repeat("w", 252)), "-:3:12: metadata.name:"},
		"a refused volume": {
			deployment + "      volumes: [{name: v, nfs: {server: a, path: /b}}]\n",
			"-:13:27: spec.template.spec.volumes[0].nfs: This kind of volume is not supported",
		},
		"a ConfigMap as volume": {
			deployment + "      volumes: [{name: v, configMap: {name: A_b}}]\n",
			"spec.template.spec.volumes[0].configMap.name:",
		},
		"the same one twice": {
			deployment + "---\n" + deployment,
			"metadata.name: Deployment default/web is given twice, first in -:3",
		},
		"a Job without a policy": {
			"apiVersion: batch/v1\nkind: Job\nmetadata: {name: work}" + strings.Replace(jobSpec, "Never", "Always", 1),
			`spec.template.spec.restartPolicy: is required: valid values: "OnFailure", "Never"`,
		},
		"too many pods": {
			edited("replicas: 3", "replicas: 1001"),
			"-:5:3: spec.replicas: 1001 pods are more than one machine can run",
		},
		"another controller's Job": {
			"apiVersion: batch/v1\nkind: Job\nmetadata: {name: work}" + jobSpec + "  managedBy: example.com/other\n",
			"-:10:3: spec.managedBy: Another controller would manage the Job",
		},
		"a CronJob without a schedule": {
			"apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: work}\nspec:\n  jobTemplate:" +
				strings.ReplaceAll(jobSpec, "\n", "\n    "),
			"spec.schedule: is required",
		},
	} {
		m := withWorkloads(t, c.text)
		if refused := (*RefusedError)(nil); !errors.As(m.Err(), &refused) ||
			!strings.Contains(refused.Error(), c.want) || len(refused.Problems) != 1 {
			t.Errorf("%s: want only %q in: %v", name, c.want, m.Err())
		}
	}
}

// TestWorkloadNotes checks that fields of a template without effect are noted at their position, once for all pods.
func TestWorkloadNotes(t *testing.T) {
	m := withWorkloads(t, deployment+"      nodeName: a\n")
	if m.Err() != nil || len(m.NoEffect) != 1 || !strings.HasPrefix(m.NoEffect[0].String(), "-:13:7: spec.template.spec.nodeName: ") {
		t.Errorf("%v, %v", m.Err(), m.NoEffect)
	}
}

// TestWorkloadNotesOfOwnFields checks that fields without effect outside of the template are noted too.
func TestWorkloadNotesOfOwnFields(t *testing.T) {
	m := withWorkloads(t,
		strings.Replace(deployment, "replicas: 3", "progressDeadlineSeconds: 3", 1)+
			"status: {replicas: 3, readyReplicas: 2}\n")
	var notes []string
	for _, n := range m.NoEffect {
		path, _, _ := strings.Cut(n.String(), ": ")
		notes = append(notes, path+" "+n.Path)
	}
	if m.Err() != nil || strings.Join(notes, "; ") != "-:5:3 spec.progressDeadlineSeconds; -:13:1 status" {
		t.Errorf("%v, %v", m.Err(), notes)
	}
}

// TestKindsWithoutEffect checks that other kinds in charts are noted once if workloads are accepted, and that unknown
// kinds are refused.
func TestKindsWithoutEffect(t *testing.T) {
	text := deployment +
		"---\napiVersion: v1\nkind: ServiceAccount\nmetadata: {name: web}\n---\napiVersion: networking.k8s.io/v1\n" +
		"kind: Ingress\nmetadata: {name: web, namespace: shop}\nspec: {rules: [{host: a}]}\n" +
		"---\napiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: reader}\n"
	m := withWorkloads(t, text)
	var skipped []string
	for _, s := range m.Skipped {
		skipped = append(skipped, fmt.Sprintf("%d:%d %s", s.Line, s.Column, s))
	}
	want := []string{
		"15:1 skipped: ServiceAccount/web (" + noServer + ")", "19:1 skipped: Ingress/web in namespace shop (" + noTraffic + ")",
		"24:1 skipped: ClusterRole/reader (" + noServer + ")",
	}
	if m.Err() != nil || !slices.Equal(skipped, want) || len(m.NoEffect) > 0 {
		t.Errorf("%v\n%s\nwant\n%s", m.Err(), strings.Join(skipped, "\n"), strings.Join(want, "\n"))
	}
	for _, want := range []string{
		"-:15:1: kind: podctl does not run example.com/v1 Widget; it accepts Pod, Service",
		"; --skip-unknown of apply",
	} {
		m := withWorkloads(t, deployment+"---\napiVersion: example.com/v1\nkind: Widget\nmetadata: {name: web}\n")
		if m.Err() == nil || !strings.Contains(m.Err().Error(), want) {
			t.Errorf("unknown kind: %v, want %s", m.Err(), want)
		}
	}
	for old, hint := range map[string]string{
		"apps/v1beta1\nkind: Deployment":    "; the apiVersion of Deployment is apps/v1",
		"extensions/v1beta1\nkind: Ingress": "; --skip-unknown of apply",
		"batch/v1beta1\nkind: CronJob":      "; the apiVersion of CronJob is batch/v1",
		"kustomize.config.k8s.io/v1beta1\nkind: Kustomization": "; podctl does not build kustomizations: " +
			"write kustomize build DIR | podctl apply -f -",
		"example.com/v1\nkind: Job": "; --skip-unknown of apply",
		"apps/v1\nkind: Deploymnet": "of apiVersion batch/v1\n",
	} {
		if m := withWorkloads(t, "apiVersion: "+old+"\nmetadata: {name: web}\n"); m.Err() == nil ||
			!strings.Contains(m.Err().Error()+"\n", hint) {
			t.Errorf("%s: %v, want %s", old, m.Err(), hint)
		}
	}
	if m := Parse(input.Source{Name: "-", Text: []byte("apiVersion: v1\nkind: Service\nmetadata: {name: web}\n")}); m.Err() == nil {
		t.Error("a Service was accepted without Loader.Workloads")
	}
}

// TestSkipUnknown checks that objects of unknown kinds are skipped and listed once, also in a List. Likely mistakes in
// objects that podctl runs are refused.
func TestSkipUnknown(t *testing.T) {
	widget := "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: web}\nspec: {pods: 3}\n"
	foreign := "apiVersion: serving.knative.dev/v1\nkind: Service\nmetadata: {name: web, namespace: shop}\n"
	list := "apiVersion: v1\nkind: List\nitems:\n- " + strings.ReplaceAll(strings.TrimSpace(widget), "\n", "\n  ") +
		"\n- {apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: w.example.com}}\n"
	l := Loader{Workloads: true, SkipUnknown: true}
	m, err := l.Parse(input.Source{Name: "-", Text: []byte(deployment + "---\n" + widget + "---\n" + foreign + "---\n" + list)})
	if err != nil || m.Err() != nil || len(m.Workloads) != 1 {
		t.Fatalf("%v %v", err, m.Err())
	}
	var skipped []string
	for _, s := range m.Skipped {
		skipped = append(skipped, s.String())
	}
	if got, want := strings.Join(skipped, "\n"), "skipped: Widget/web ("+noUse+")\nskipped: Service/web in namespace shop ("+noUse+
		")\nskipped: CustomResourceDefinition/w.example.com ("+noServer+")"; got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	for _, meta := range []string{
		"apps/v1beta1\nkind: Deployment", "batch/v1beta1\nkind: CronJob", "extensions/v1beta1\nkind: DaemonSet",
		"v2\nkind: Pod", "apps/v1\nkind: Deploymnet",
		"apps/v1\nkind: DeploymentList", "v1\nkind: Confgimap", "batch/v1\nkind: job",
		"kustomize.config.k8s.io/v1beta1\nkind: Kustomization",
	} {
		m, err := l.Parse(input.Source{Name: "-", Text: []byte("apiVersion: " + meta + "\nmetadata: {name: web}\n")})
		if err != nil || m.Err() == nil || len(m.Skipped) > 0 || strings.Contains(m.Err().Error(), "--skip-unknown") {
			t.Errorf("%s is not refused: %v %v", meta, m.Skipped, m.Err())
		}
	}
}

// TestSkippedObjectsHaveNoLimit checks long definitions of custom resources, which are not kept.
func TestSkippedObjectsHaveNoLimit(t *testing.T) {
	crd := "---\napiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\n" +
		"metadata: {name: w%d.example.com}\nspec: {names: [" +
		strings.Repeat("a,", 30_000) + "]}\n"
	var all strings.Builder
	for i := range 4 {
		fmt.Fprintf(&all, crd, i)
	}
	if m := withWorkloads(t, all.String()+"---\n"+deployment); m.Err() != nil || len(m.Workloads) != 1 || len(m.Skipped) != 4 {
		t.Errorf("%v", m.Err())
	}
}

// TestStatefulSetClaims checks that containers may mount the claims of a StatefulSet by name.
func TestStatefulSetClaims(t *testing.T) {
	set := strings.NewReplacer("Deployment", "StatefulSet", "replicas: 3",
		"serviceName: web\n  volumeClaimTemplates:\n  - metadata: {name: data}\n"+
			"    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}")
	m := withWorkloads(t, set.Replace(deployment)+"        volumeMounts: [{name: data, mountPath: /data}]\n")
	if m.Err() != nil || len(m.Workloads) != 1 {
		t.Fatal(m.Err())
	}
	if v := m.Workloads[0].Template.Pod.Spec.Volumes; len(v) != 1 || v[0].PersistentVolumeClaim.ClaimName != "data-web-0" {
		t.Errorf("%+v", v)
	}
}

// TestWorkloadObjects checks that the pod of a template gets the ConfigMaps of the manifest, and that missing ones are
// reported at their position.
func TestWorkloadObjects(t *testing.T) {
	text := deployment +
		"        envFrom: [{configMapRef: {name: one}}, {configMapRef: {name: two}}]\n---\napiVersion: v1\n" +
		"kind: ConfigMap\nmetadata: {name: one}\ndata: {a: b}\n"
	m := withWorkloads(t, text)
	if m.Err() != nil || len(m.Objects) > 0 || len(m.Problems) != 1 ||
		!strings.HasPrefix(m.Problems[0].Path, "spec.template.spec.containers[0].envFrom[1]") {
		t.Fatalf("%v, %d objects in Objects, %v", m.Err(), len(m.Objects), fmt.Sprint(m.Problems))
	}
	if w := m.Workloads[0]; w.Template.Objects.ConfigMaps["one"] == nil {
		t.Errorf("objects of the template %+v", w.Template.Objects)
	}
}

// TestReplicationController checks that it is read as a ReplicaSet, with a selector from its labels if it has none.
func TestReplicationController(t *testing.T) {
	const text = `apiVersion: v1
kind: ReplicationController
metadata: {name: old}
spec:
  replicas: 2
  template:
    metadata: {labels: {app: old}}
    spec: {containers: [{name: a, image: i}]}
`
	m := loadServices(t, text)
	if m.Err() != nil || len(m.Workloads) != 1 || len(m.NoEffect) != 1 ||
		!strings.Contains(m.NoEffect[0].Detail, "treated as a ReplicaSet") {
		t.Fatalf("%+v %v", m.NoEffect, m.Err())
	}
	if w := m.Workloads[0]; w.ReplicaSet == nil || *w.ReplicaSet.Spec.Replicas != 2 ||
		w.ReplicaSet.Spec.Selector.MatchLabels["app"] != "old" {
		t.Errorf("%+v", w.ReplicaSet)
	}
	for bad, want := range map[string]string{
		"  selector: {app: other}\n  template:": "does not match template `labels`",
		"  selektor: {app: old}\n  template:":   "unknown field",
	} {
		if err := loadServices(t, strings.Replace(text, "  template:", bad, 1)).Err(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if err := loadServices(t, "apiVersion: v1\nkind: ReplicationController\nmetadata: {name: old}\n").Err(); err == nil {
		t.Error("a ReplicationController without a template was accepted")
	}
}

// TestNodesOfDaemonSets checks that fields that select nodes take effect for a DaemonSet, but not for a Deployment.
func TestNodesOfDaemonSets(t *testing.T) {
	placed := strings.Replace(deployment, "      containers:", `      nodeSelector: {disk: ssd}
      affinity:
        nodeAffinity:
          requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: disk, operator: Exists}]}]}
      tolerations: [{operator: Exists}]
      containers:`, 1)
	for text, want := range map[string][]string{
		placed: {"spec.template.spec.nodeSelector", "spec.template.spec.affinity", "spec.template.spec.tolerations"},
		strings.NewReplacer("Deployment", "DaemonSet", "  replicas: 3\n", "").Replace(placed): {"spec.template.spec.tolerations"},
	} {
		m := withWorkloads(t, text)
		var noted []string
		for _, n := range m.NoEffect {
			noted = append(noted, n.Path)
		}
		if m.Err() != nil || !slices.Equal(noted, want) {
			t.Errorf("%s: %v %v", m.Workloads[0].Kind(), noted, m.Err())
		}
	}
}

// TestManifestsCannotSetControllers checks that a manifest cannot set the controller of its pod or workload, so that no
// workload adopts it.
func TestManifestsCannotSetControllers(t *testing.T) {
	const owner = "ownerReferences: [{apiVersion: apps/v1, kind: Deployment, name: web, " +
		"uid: 2a4ae4ae-6b3d-4b9f-8a0b-3f0b7b1c0b11, controller: true}]"
	m := withWorkloads(t,
		"{apiVersion: v1, kind: Pod, metadata: {name: web-0, "+owner+"}, spec: {containers: [{name: a, image: i}]}}\n"+
			"---\n{apiVersion: batch/v1, kind: Job, metadata: {name: j, "+owner+"}, spec: {template: {metadata: {"+owner+"}, "+
			"spec: {restartPolicy: Never, containers: [{name: a, image: i}]}}}}")
	if len(m.Pods) != 1 || len(m.Workloads) != 1 {
		t.Fatal(m.Problems)
	}
	if refs := m.Pods[0].Pod.OwnerReferences; len(refs) > 0 {
		t.Errorf("owner references of the pod %v", refs)
	}
	if refs := m.Workloads[0].Meta().OwnerReferences; len(refs) > 0 {
		t.Errorf("owner references of the Job %v", refs)
	}
	if refs := m.Workloads[0].Template.Pod.OwnerReferences; len(refs) > 0 {
		t.Errorf("owner references of the template %v", refs)
	}
}

// TestOnlyGeneratedNames checks that generateName alone is one problem without further notes.
func TestOnlyGeneratedNames(t *testing.T) {
	const pod = "{restartPolicy: %s, containers: [{name: a, image: i}]}"
	for kind, spec := range map[string]string{
		"v1\nkind: Pod": fmt.Sprintf(pod, "Always"),
		"apps/v1\nkind: Deployment": "{selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: " +
			fmt.Sprintf(pod, "Always") + "}}",
		"apps/v1\nkind: StatefulSet": "{selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, " +
			"spec: " +
			fmt.Sprintf(pod, "Always") + "}}",
		"apps/v1\nkind: DaemonSet": "{selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: " +
			fmt.Sprintf(pod, "Always") + "}}",
		"batch/v1\nkind: Job":     "{template: {spec: " + fmt.Sprintf(pod, "Never") + "}}",
		"batch/v1\nkind: CronJob": "{schedule: '* * * * *', jobTemplate: {spec: {template: {spec: " + fmt.Sprintf(pod, "Never") + "}}}}",
		"v1\nkind: Service":       "{ports: [{port: 80}]}",
	} {
		m := withWorkloads(t, "apiVersion: "+kind+"\nmetadata: {generateName: a-}\nspec: "+spec+"\n")
		if len(m.Problems) != 1 || !strings.Contains(m.Problems[0].Detail, "is not a complete name") || len(m.Notes()) > 0 {
			t.Errorf("%s: %v %v", kind, m.Err(), m.Notes())
		}
	}
}
