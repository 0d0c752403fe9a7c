package load

import (
	"fmt"
	"strings"
	"testing"
)

// badNames are invalid as names of objects.
var badNames = []string{
	".", "..", "../../../victim", ".hidden", "a/b", "/a", "a\nb", "a\x01b", "a\u202eb", "A", "a b", "a;b",
	strings.Repeat("a", 254),
}

// TestUnsafeNamesAreRefused checks that every name that becomes part of a path is checked when it is read, with
// its position.
func TestUnsafeNamesAreRefused(t *testing.T) {
	volume := func(kind string) string { return minimal + "  volumes:\n  - name: v\n    " + kind + "\n" }
	variable := func(from string) string {
		return minimal + "    env: [{name: A, valueFrom: {" + from + ": {name: %q, key: a}}}]\n"
	}
	namespaced := strings.Replace(minimal, "name: web", "name: web\n  namespace: %q", 1)
	for path, text := range map[string]string{
		"11:29: spec.volumes[0].persistentVolumeClaim.claimName":         volume("persistentVolumeClaim: {claimName: %q}"),
		"11:14: spec.volumes[0].secret.secretName":                       volume("secret: {secretName: %q}"),
		"11:17: spec.volumes[0].configMap.name":                          volume("configMap: {name: %q}"),
		"11:37: spec.volumes[0].projected.sources[0].secret.name":        volume("projected: {sources: [{secret: {name: %q}}]}"),
		"11:40: spec.volumes[0].projected.sources[0].configMap.name":     volume("projected: {sources: [{configMap: {name: %q}}]}"),
		"9:48: spec.containers[0].env[0].valueFrom.secretKeyRef.name":    variable("secretKeyRef"),
		"9:51: spec.containers[0].env[0].valueFrom.configMapKeyRef.name": variable("configMapKeyRef"),
		"9:28: spec.containers[0].envFrom[0].secretRef.name":             minimal + "    envFrom: [{secretRef: {name: %q}}]\n",
		"9:31: spec.containers[0].envFrom[0].configMapRef.name":          minimal + "    envFrom: [{configMapRef: {name: %q}}]\n",
		"9:24: spec.imagePullSecrets[0].name":                            minimal + "  imagePullSecrets: [ {name: %q}]\n",
		"4:3: metadata.name":                                             strings.Replace(minimal, "name: web", "name: %q", 1),
		"5:3: metadata.namespace":                                        namespaced,
		"7:5: spec.containers[0].name":                                   strings.Replace(minimal, "name: app", "name: %q", 1),
		"10:5: spec.volumes[0].name":                                     minimal + "  volumes:\n  - name: %q\n    emptyDir: {}\n",
		"3:12: metadata.name (ConfigMap)":                                "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %q}\n",
		"3:12: metadata.name (Secret)":                                   "apiVersion: v1\nkind: Secret\nmetadata: {name: %q}\n",
		"3:12: metadata.name (PersistentVolumeClaim)": "apiVersion: v1\nkind: PersistentVolumeClaim\n" +
			"metadata: {name: %q}\n" + claimSpec,
		"3:21: metadata.namespace (ConfigMap)": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: %q}\n",
		"3:21: metadata.namespace (Secret)":    "apiVersion: v1\nkind: Secret\nmetadata: {name: a, namespace: %q}\n",
		"3:21: metadata.namespace (PersistentVolumeClaim)": "apiVersion: v1\nkind: PersistentVolumeClaim\n" +
			"metadata: {name: a, namespace: %q}\n" + claimSpec,
	} {
		place, _, _ := strings.Cut(path, " (")
		for _, name := range badNames {
			m := parsed(t, strings.ReplaceAll(text, "%q", fmt.Sprintf("%q", name)))
			if reported := problemsOf(m); !strings.Contains(reported, "-:"+place+": ") {
				t.Errorf("%s: %.20q: no problem at this path:\n%s", path, name, reported)
			} else if len(m.Problems) > 2 || len(strings.Split(reported, "\n")) != len(m.Problems) {
				t.Errorf("%s: %.20q: more than one problem:\n%s", path, name, reported)
			}
		}
		if reported := problemsOf(parsed(t, strings.ReplaceAll(text, "%q", `"a-1"`))); strings.Contains(reported, "not valid") {
			t.Errorf("%s: a valid name is refused:\n%s", path, reported)
		}
	}
}

// TestUnsafeKeysAreRefused checks the keys of ConfigMaps and Secrets, which become files.
func TestUnsafeKeysAreRefused(t *testing.T) {
	for _, place := range []string{"ConfigMap data", "ConfigMap binaryData", "Secret data", "Secret stringData"} {
		kind, field, _ := strings.Cut(place, " ")
		text := "apiVersion: v1\nkind: " + kind + "\nmetadata: {name: a}\n" + field + ":\n  %q: YQ==\n"
		for _, key := range []string{"", ".", "..", "a]b", "..a", "../a", "a/b", "a\nb", "a\x00b", "a b", strings.Repeat("a", 254)} {
			want := "-:5:3: " + field
			if key == "a]b" {
				want = "-:4:1: " + field
			}
			if reported := problemsOf(parsed(t, fmt.Sprintf(text, key))); !strings.Contains(reported, want) ||
				!strings.Contains(reported, "is not a valid key") {
				t.Errorf("%s %s %.20q: want %q:\n%s", kind, field, key, want, reported)
			}
		}
		for _, key := range []string{"a", ".a", "A_b-c.d", strings.Repeat("a", 253)} {
			if m := parsed(t, fmt.Sprintf(text, key)); m.Err() != nil {
				t.Errorf("%s %s %.20q: %v", kind, field, key, m.Err())
			}
		}
	}
	m := parsed(t, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {k: a}\nbinaryData: {k: YQ==}\n")
	if reported := problemsOf(m); !strings.Contains(reported, "-:4:8: data[k]: is in binaryData, too") {
		t.Errorf("duplicate key:\n%s", reported)
	}
}

// TestUIDs checks uids, which become part of cgroups, locks and arguments of CNI plugins, which are separated by ";".
func TestUIDs(t *testing.T) {
	text := strings.Replace(minimal, "  name: web\n", "  name: web\n  uid: %q\n", 1)
	for _, uid := range []string{
		"x;IP=10.94.0.77", "x;K8S_POD_NAME=other", "a\nb", "a=b", "a b", "-a", "_ids", "a_b", ".a", "..", "a/b", "a.b",
		"a\\x2d", "é", "a\x00", strings.Repeat("a", 65),
	} {
		if reported := problemsOf(parsed(t, fmt.Sprintf(text, uid))); !strings.Contains(reported, "-:5:3: metadata.uid: ") ||
			!strings.Contains(reported, "a uid has 1 to 64 letters") {
			t.Errorf("%q:\n%s", uid, reported)
		}
	}
	for _, uid := range []string{
		"6f2a43c2-4c36-4cc7-8f0f-9c1c7a1d2e3f",
		"0f3ce44e5d2c5ea78f436a2ba6fc8ba1",
		"u",
		"U-1",
		strings.Repeat("a", 64),
	} {
		if m := parsed(t, fmt.Sprintf(text, uid)); m.Err() != nil || string(m.Pods[0].Pod.UID) != uid {
			t.Errorf("%q: %v", uid, m.Err())
		}
	}
}

// TestNamesTooLongForTheLogsAreRefused checks the length of NAMESPACE_NAME_UID, a directory to whose name a dot and the
// time are added when the pod is deleted.
func TestNamesTooLongForTheLogsAreRefused(t *testing.T) {
	uid, namespace := "6f2a43c2-4c36-4cc7-8f0f-9c1c7a1d2e3f", "some-namespace"
	room := 255 - 23 - len("__") - len(uid) - len(namespace)
	for length, want := range map[int]string{
		room: "",
		room +
			1: fmt.Sprintf(
			"-:3:12: metadata.name: has %d bytes, so the name of its log directory, NAMESPACE_NAME_UID, "+
				"would have 233 bytes; at most 232 are allowed", room+1),
		253: "at most 232",
	} {
		text := strings.Replace(minimal, "metadata:\n  name: web\n",
			fmt.Sprintf("metadata: {name: %s, namespace: %s, uid: %s}\n", strings.Repeat("a", length), namespace, uid),
			1)
		if reported := problemsOf(parsed(t, text)); (reported == "") != (want == "") || !strings.Contains(reported, want) {
			t.Errorf("%d bytes: want %q:\n%s", length, want, reported)
		}
	}
}

// TestHostPathsMustBeAbsolute checks host paths, because podctl and the runtime have different working
// directories.
func TestHostPathsMustBeAbsolute(t *testing.T) {
	for path, good := range map[string]bool{
		"/srv/x": true,
		"/":      true,
		"srv":    false,
		"./srv":  false,
		".":      false,
		"~/x":    false,
		"C:/x":   false,
	} {
		m := parsed(t, minimal+"  volumes:\n  - name: v\n    hostPath: {type: DirectoryOrCreate, path: "+fmt.Sprintf("%q", path)+"}\n")
		reported := problemsOf(m)
		want := fmt.Sprintf("-:11:41: spec.volumes[0].hostPath.path: %q is not valid: must be an absolute path", path)
		if good != (m.Err() == nil) || (!good && !strings.Contains(reported, want)) {
			t.Errorf("%q:\n%s", path, reported)
		}
	}
}

// TestHostIPsMustBeAddresses checks addresses of ports, which are passed to CNI plugins and which the API server
// does not validate.
func TestHostIPsMustBeAddresses(t *testing.T) {
	for ip, good := range map[string]bool{
		"127.0.0.1":    true,
		"::1":          true,
		"0.0.0.0":      true,
		"localhost":    false,
		"1.2.3":        false,
		"fe80::1%eth0": false,
		"1.2.3.4\n":    false,
		"-j ACCEPT":    false,
	} {
		m := parsed(t, minimal+"    ports: [{containerPort: 80, hostPort: 80, hostIP: "+fmt.Sprintf("%q", ip)+"}]\n")
		if reported := problemsOf(m); good != (m.Err() == nil) ||
			(!good && !strings.Contains(reported, "-:9:47: spec.containers[0].ports[0].hostIP: ")) {
			t.Errorf("%q:\n%s", ip, reported)
		}
	}
}

// TestNULBytesAreRefused checks for NUL bytes, at which Linux would truncate a text.
func TestNULBytesAreRefused(t *testing.T) {
	for path, text := range map[string]string{
		"spec.containers[0].args[0]":                           `    args: ["a\0b"]`,
		"spec.containers[0].env[0].value":                      `    env: [{name: A, value: "a\0b"}]`,
		"spec.containers[0].workingDir":                        `    workingDir: "/a\0b"`,
		"spec.containers[0].lifecycle.preStop.exec.command[0]": `    lifecycle: {preStop: {exec: {command: ["a\0b"]}}}`,
		"spec.volumes[0].hostPath.path":                        `  volumes: [{name: v, hostPath: {path: "/a\0b"}}]`,
	} {
		if reported := problemsOf(parsed(t, minimal+text+"\n")); !strings.Contains(reported, path+": has a NUL byte") {
			t.Errorf("%s:\n%s", path, reported)
		}
	}
}

// TestMetadataOfObjectsIsChecked compares the check with the API server's. No values of a Secret are repeated.
func TestMetadataOfObjectsIsChecked(t *testing.T) {
	for _, kind := range []string{"ConfigMap", "Secret", "PersistentVolumeClaim"} {
		m := parsed(t, "apiVersion: v1\nkind: "+kind+"\nmetadata: {name: a, labels: {a: \"s3 cret\"}, annotations: {\"s3 cret\": b}}\n")
		reported := problemsOf(m)
		if !strings.Contains(reported, "-:3:21: metadata.labels") || !strings.Contains(reported, "metadata.annotations: ") {
			t.Errorf("%s:\n%s", kind, reported)
		}
		if kind == "Secret" && strings.Contains(reported, "s3 cret") {
			t.Errorf("the value is in the report:\n%s", reported)
		}
	}
}
