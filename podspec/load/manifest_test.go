package load

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/podctl/podctl/podspec/input"
)

// TestProblems checks the position and text of each problem.
func TestProblems(t *testing.T) {
	cases := map[string]struct {
		text, want string
	}{
		"nothing at all":        {"", "-:1:1: contains no Kubernetes object"},
		"only comments":         {"# nothing\n---\n", "-:1:1: contains no Kubernetes object"},
		"broken YAML":           {"apiVersion: v1\nkind: [Pod\nmetadata: {}\n", "is not valid YAML"},
		"a list at the top":     {"- a\n- b\n", "-:1:1: is not a Kubernetes object"},
		"no kind":               {"apiVersion: v1\n", "apiVersion and kind are required"},
		"another kind":          {"apiVersion: apps/v1\nkind: Deployment\n", "-:2:1: kind: podctl does not run apps/v1 Deployment"},
		"an unknown list field": {"apiVersion: v1\nkind: List\nitem: []\nitems: []\n", "-:3:1: unknown field; did you mean items?"},
		"an unknown field": {
			strings.Replace(minimal, "image:", "imagee:", 1),
			"-:8:5: spec.containers[0].imagee: unknown field; did you mean image?",
		},
		"a field in wrong case": {
			strings.Replace(minimal, "    image:", "    Image:", 1),
			"-:8:5: spec.containers[0].Image: unknown field; did you mean image?",
		},
		"a field twice": {
			minimal + "  - name: b\n    image: a\n    image: b\n",
			"-:11:5: spec.containers[1].image: is given twice, first in line 10",
		},
		"a wrong type": {
			strings.Replace(minimal, "containers:\n  - name", "containers:\n  - stdin: maybe\n    name", 1),
			"spec.containers[0].stdin: is a string, true or false is expected",
		},
		"a colon without a space": {
			strings.Replace(minimal, "spec:\n", "spec:\n  securityContext:\n    runAsUser:5\n", 1),
			"-:7:5: spec.securityContext: is a string, a map of fields (PodSecurityContext) is expected; " +
				"write a field as its name, a colon, a space and its value",
		},
		"a list that is a text": {
			strings.Replace(minimal, "  - name: app\n", "  - name: app\n    args: run\n", 1),
			"-:8:5: spec.containers[0].args: is a string, a list is expected",
		},
		"a text without quotes": {
			minimal + "    env: [{name: A, value: no}]\n",
			"spec.containers[0].env[0].value: is a bool, a string is expected; put it in quotes",
		},
		"a policy unquoted": {
			minimal + "  restartPolicy: on\n",
			"-:9:3: spec.restartPolicy: is a bool, a string is expected; put it in quotes",
		},
		"a bad quantity": {
			minimal + "    resources: {limits: {cpu: plenty}}\n",
			`spec.containers[0].resources.limits.cpu: "plenty" is not a quantity`,
		},
		"no name": {strings.Replace(minimal, "  name: web\n", "  labels: {a: b}\n", 1), "metadata.name: is required"},
		"only generateName": {
			strings.Replace(minimal, "  name: web\n", "  generateName: web-\n", 1),
			"there is no API server to complete it",
		},
		"a uid with a slash": {strings.Replace(minimal, "  name: web\n", "  name: web\n  uid: a/b\n", 1), "-:5:3: metadata.uid:"},
		"a refused volume": {
			minimal + "  volumes:\n  - name: v\n    nfs: {server: a, path: /b}\n",
			"-:11:5: spec.volumes[0].nfs: This kind of volume is not supported",
		},
		"the same pod twice": {minimal + "---\n" + minimal, "-:13:3: metadata.name: Pod default/web is given twice, first in -:4"},
		"an invalid port": {
			minimal + "    ports: [{containerPort: 800000}]\n",
			"spec.containers[0].ports[0].containerPort: 800000 is not valid",
		},
		"a missing volume": {
			minimal + "    volumeMounts: [{name: x, mountPath: /x}]\n",
			`spec.containers[0].volumeMounts[0].name: "x" does not exist in this pod`,
		},
		"a second document": {
			minimal + "---\napiVersion: v1\nkind: Pod\nmetadata: {name: b}\nspec: {containers: [{name: a, imag: b}]}\n",
			"-:13:31: spec.containers[0].imag: unknown field",
		},
		"an item of a list": {
			"apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: Pod\n  metadata: {name: b}\n" +
				"  spec: {contaners: []}\n",
			"-:7:10: spec.contaners: unknown field; did you mean containers?",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			m := parsed(t, c.text)
			var refused *RefusedError
			if !errors.As(m.Err(), &refused) {
				t.Fatalf("accepted: %v", m.Problems)
			}
			if !strings.Contains(refused.Error(), c.want) {
				t.Errorf("want %q in:\n%s", c.want, refused)
			}
		})
	}
}

// reported returns the problems of a manifest as line, path and first words.
func reported(m *Manifest) []string {
	var lines []string
	for _, p := range m.Problems {
		words := strings.Fields(p.Detail)
		lines = append(lines, fmt.Sprintf("%d %s: %s", p.Line, p.Path, strings.Join(words[:min(len(words), 4)], " ")))
	}
	return lines
}

// TestAllProblemsAtOnce checks that a wrong type or an unknown field does not hide other problems or errors of the API
// server's rules.
func TestAllProblemsAtOnce(t *testing.T) {
	m := parsed(t, `apiVersion: v1
kind: Pod
metadata: {name: Bad_Name}
spec:
  restartPolicy: Sometimes
  foo: 1
  containers:
  - name: a
    image: ""
    tty: maybe
    ports: [{containerPort: web}]
  - name: a
    image: b
    bar: 2
    securityContext: {runAsUser: 1.5}
---
apiVersion: v1
kind: Secret
metadata: {name: s}
data: {a.txt: "=", b: 5}
`)
	want := []string{
		`3 metadata.name: "Bad_Name" is not valid:`,
		`5 spec.restartPolicy: "Sometimes" is not one`,
		"6 spec.foo: unknown field",
		"9 spec.containers[0].image: is required",
		"10 spec.containers[0].tty: is a string, true",
		"11 spec.containers[0].ports[0].containerPort: is a string, a",
		`12 spec.containers[1].name: "a" is given twice`,
		"14 spec.containers[1].bar: unknown field",
		"15 spec.containers[1].securityContext.runAsUser: is a number 1.5,",
		"20 data[a.txt]: is not base64; put",
		"20 data.b: is a number, base64",
	}
	if diff := cmp.Diff(want, reported(m)); diff != "" {
		t.Error(diff)
	}
}

// TestUndecodableValueIsReportedOnce checks that a value that could not be decoded is not also reported as missing.
func TestUndecodableValueIsReportedOnce(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"a misspelt list": {
			strings.Replace(minimal, "containers:", "contaners:", 1),
			"6 spec.contaners: unknown field; did you",
		},
		"a misspelt field": {
			strings.Replace(minimal, "image:", "imagee:", 1),
			"8 spec.containers[0].imagee: unknown field; did you",
		},
		"a misspelt name": {strings.Replace(minimal, "  name: web", "  nam: web", 1), "4 metadata.nam: unknown field; did you"},
		"a probe without handler": {
			minimal + "    livenessProbe: {httpGet: 80}\n",
			"9 spec.containers[0].livenessProbe.httpGet: is a number 80,",
		},
		"a port that is a list": {
			minimal + "    livenessProbe: {httpGet: {port: [80]}}\n",
			"9 spec.containers[0].livenessProbe.httpGet.port: is a list, a",
		},
		"a container of text": {minimal + "  - app2\n", "9 spec.containers[1]: is a string, a"},
		"volumes of text": {
			minimal + "    volumeMounts: [{name: a, mountPath: /a}]\n  volumes: a\n",
			"10 spec.volumes: is a string, a",
		},
		"a name that is not a string": {strings.Replace(minimal, "name: web", "name: 5", 1), "4 metadata.name: is a number 5,"},
		"a spec that is a list":       {"apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: []\n", "4 spec: is a list, a"},
		"a kind that is a list":       {"apiVersion: v1\nkind: [Pod]\n", "2 kind: is a list, a"},
		"a limit that is a list": {
			minimal + "    resources: {limits: {cpu: [1]}, requests: {cpu: 1}}\n",
			"9 spec.containers[0].resources.limits.cpu: is a list, a",
		},
		"an unknown volume": {
			minimal + "  volumes: [{name: a, emptyDirr: {}}]\n",
			"9 spec.volumes[0].emptyDirr: unknown field; did you",
		},
		"a time that is none": {
			strings.Replace(minimal, "  name: web", "  name: web\n  creationTimestamp: today", 1),
			`5 metadata.creationTimestamp: "today" is not a`,
		},
		"data of a ConfigMap": {
			minimal + "    env: [{name: A, valueFrom: {configMapKeyRef: {name: c, key: k}}}]\n---\n" +
				configMapHead[:len(configMapHead)-3] + "c}\ndata: {k: 1}\n",
			"14 data.k: is a number 1,",
		},
		"a field of a refused one": {
			minimal + "  volumes: [{name: a, emptyDir: {sizeLimit: much}}]\n",
			`9 spec.volumes[0].emptyDir.sizeLimit: "much" is not a`,
		},
	} {
		if diff := cmp.Diff([]string{c.want}, reported(parsed(t, c.text))); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// TestValuesAreQuotedNotTheirAddresses checks that a wrong value is shown as text, which is the same each time.
func TestValuesAreQuotedNotTheirAddresses(t *testing.T) {
	m := parsed(t, strings.Replace(minimal, "spec:\n", `spec:
  preemptionPolicy: bad1
  securityContext: {fsGroupChangePolicy: bad2, supplementalGroupsPolicy: bad3, runAsUser: -5}
  volumes: [{name: a, hostPath: {path: /a, type: bad4}}]
`, 1)+"    securityContext: {procMount: bad5}\n")
	var refused *RefusedError
	if !errors.As(m.Err(), &refused) {
		t.Fatal("accepted")
	}
	for _, want := range []string{`"bad1" is`, `"bad2" is`, `"bad3" is`, `"bad4" is`, `"bad5" is`, "-5 is"} {
		if !strings.Contains(refused.Error(), want) || strings.Contains(refused.Error(), "0x") {
			t.Errorf("want %s and no memory address in:\n%s", want, refused)
		}
	}
}

// TestExportedPodLoads checks that a pod exported from a cluster can be applied, and that the cluster's parts are
// noted.
func TestExportedPodLoads(t *testing.T) {
	m, err := Load(t.Context(), input.Reader{}, "testdata/valid-exported.yaml")
	if err != nil || m.Err() != nil {
		t.Fatal(err, m.Err())
	}
	pod := m.Pods[0].Pod
	if len(pod.Spec.Volumes) != 1 || len(pod.Spec.Containers[0].VolumeMounts) != 1 || pod.Status.Phase != "" {
		t.Errorf("the pod still has the injected token or the status: %+v", pod.Spec.Volumes)
	}
	noted := map[string]bool{}
	for _, n := range m.NoEffect {
		noted[n.Path] = true
	}
	for _, path := range []string{
		"status", "spec.nodeName", "spec.tolerations", "spec.serviceAccountName", "metadata.resourceVersion",
		"metadata.ownerReferences", "spec.volumes[1]",
	} {
		if !noted[path] {
			t.Errorf("no note for %s: %v", path, m.NoEffect)
		}
	}
}

// TestNamespaceOfTheSource checks that objects without a namespace get that of their source and find each other.
func TestNamespaceOfTheSource(t *testing.T) {
	text := strings.Replace(minimal, "image: registry.local/app:1",
		"image: registry.local/app:1\n    envFrom: [{configMapRef: {name: c}}]", 1) +
		"---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: c}}\n"
	m := Parse(input.Source{Name: "-", Text: []byte(text), Namespace: "other"})
	if m.Err() != nil || len(m.Problems) > 0 || len(m.Pods) != 1 {
		t.Fatal(m.Problems)
	}
	other, plain := m.Pods[0].Pod, accepted(t, minimal).Pods[0].Pod
	if other.Namespace != "other" || plain.Namespace != "default" || other.UID == plain.UID {
		t.Errorf("%s %s, %s %s", other.Namespace, other.UID, plain.Namespace, plain.UID)
	}
}

// TestOnlyInjectedTokensAreOmitted checks that a volume that only has a name like an injected one is treated like other
// volumes, and that no part is ignored silently.
func TestOnlyInjectedTokensAreOmitted(t *testing.T) {
	const (
		token  = "{name: kube-api-access-x, projected: {sources: [{serviceAccountToken: {path: token}}]}}"
		mounts = "    volumeMounts: [{name: kube-api-access-x, mountPath: /v}]\n  volumes: ["
	)
	for name, c := range map[string]struct {
		volumes string
		// kept is the number of volumes and mounts, and refused the expected refusal.
		kept    int
		refused string
	}{
		"the token":             {token, 0, ""},
		"an emptyDir":           {"{name: kube-api-access-x, emptyDir: {}}", 1, ""},
		"a projected ConfigMap": {"{name: kube-api-access-x, projected: {sources: [{configMap: {name: a, optional: true}}]}}", 1, ""},
		"an nfs volume": {
			"{name: kube-api-access-x, nfs: {server: a, path: /x}}",
			1,
			"spec.volumes[0].nfs: This kind of volume is not supported",
		},
		"a token by its name": {
			strings.Replace(token, "kube-api-access-x", "own", 1),
			1,
			"spec.volumes[0].projected.sources[0].serviceAccountToken",
		},
		"two of the same name": {
			token + ", {name: kube-api-access-x, emptyDir: {}}",
			2,
			"spec.volumes[0].projected.sources[0].serviceAccountToken",
		},
		"sources beside a token": {
			token + ", {name: kube-api-access-y, nfs: {server: a, path: /x}}",
			1,
			"spec.volumes[1].nfs: This kind of volume is not supported",
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := parsed(t, minimal+mounts+c.volumes+"]\n")
			if err := m.Err(); (err != nil) != (c.refused != "") || (err != nil && !strings.Contains(err.Error(), c.refused)) {
				t.Errorf("%v, want %q", err, c.refused)
			}
			pod, noted := m.Pods[0].Pod, len(m.NoEffect) > 0
			if dropped := strings.Contains(c.volumes, token) && c.kept < 2; noted != dropped || len(pod.Spec.Volumes) != c.kept {
				t.Errorf("%+v, notes %v", pod.Spec.Volumes, m.NoEffect)
			}
			if mounted := len(pod.Spec.Containers[0].VolumeMounts) > 0; mounted == noted {
				t.Errorf("mounts %+v, notes %v", pod.Spec.Containers[0].VolumeMounts, m.NoEffect)
			}
		})
	}
}
