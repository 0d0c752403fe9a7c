package load

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	claimapi "k8s.io/kubernetes/pkg/api/persistentvolumeclaim"
	"k8s.io/kubernetes/pkg/apis/core"
	_ "k8s.io/kubernetes/pkg/apis/core/install" // registers the types for the decoder
	"k8s.io/kubernetes/pkg/apis/core/validation"

	"github.com/podctl/podctl/podspec/document"
	"github.com/podctl/podctl/podspec/fieldpath"
)

// objects lists documents that the API server accepts or refuses, by kind.
var objects = map[string][]string{
	"ConfigMap": {
		"metadata: {name: a}\n",
		"metadata: {name: a}\ndata: {k: v, .k: v, A_b-c.d: v}\nbinaryData: {b: YQ==}\nimmutable: true\n",
		"metadata: {name: a}\ndata: {\"../evil\": x, \"a/b\": z}\n",
		"metadata: {name: a}\nbinaryData: {\"../evil\": YQ==, \"..\": YQ==}\n",
		"metadata: {name: a}\ndata: {\"\": x}\n",
		"metadata: {name: a}\ndata: {k: v}\nbinaryData: {k: YQ==}\n",
		"metadata: {name: A_b}\ndata: {k: v}\n",
		"metadata: {name: a/b}\n",
		"metadata: {name: -a}\n",
		"metadata: {name: " + strings.Repeat("a", 254) + "}\n",
		"metadata: {name: a, namespace: A}\n",
		"metadata: {name: a, namespace: a.b}\n",
		"metadata: {name: a, labels: {\"a b\": c}}\n",
		"metadata: {name: a, labels: {a: \"b c\"}}\n",
		"metadata: {name: a, labels: {a: " + strings.Repeat("b", 64) + "}}\n",
		"metadata: {name: a, annotations: {\"a b\": c}}\n",
		"metadata: {name: a, annotations: {a: " + strings.Repeat("b", 257<<10) + "}}\n",
		"metadata: {name: a, finalizers: [nothing]}\n",
		"metadata: {name: a, finalizers: [\"a b/c\"]}\n",
		"metadata: {name: a, ownerReferences: [{apiVersion: v1, kind: Pod}]}\n",
		"metadata: {name: a, generation: -1}\n",
		"metadata: {name: a, generateName: A-}\n",
		"metadata: {}\ndata: {k: v}\n",
		"data: {k: v}\n",
		"metadata: {name: a}\ndata: {k: " + strings.Repeat("x", 1<<20) + "}\n",
		"metadata: {name: a}\ndata: {k: " + strings.Repeat("x", 1<<20) + ", l: x}\n",
	},
	"Secret": {
		"metadata: {name: a}\n",
		"metadata: {name: a}\ndata: {k: YQ==}\nstringData: {l: b}\n",
		"metadata: {name: a}\ntype: example.com/mine\nstringData: {l: b}\n",
		"metadata: {name: a}\ndata: {\"a/b\": YQ==}\n",
		"metadata: {name: a}\nstringData: {\"a/b\": b}\n",
		"metadata: {name: a}\nstringData: {\"a/b\": b}\ndata: {\"a/b\": YQ==}\n",
		"metadata: {name: a..b}\n",
		"metadata: {name: a, labels: {a: -}}\n",
		"metadata: {name: a}\ntype: kubernetes.io/tls\n",
		"metadata: {name: a}\ntype: kubernetes.io/tls\ndata: {tls.key: YQ==}\n",
		"metadata: {name: a}\ntype: kubernetes.io/tls\ndata: {tls.crt: YQ==}\nstringData: {tls.key: a}\n",
		"metadata: {name: a}\ntype: kubernetes.io/tls\nstringData: {tls.crt: \"\", tls.key: \"\"}\n",
		"metadata: {name: a}\ntype: kubernetes.io/dockerconfigjson\n",
		"metadata: {name: a}\ntype: kubernetes.io/dockerconfigjson\nstringData: {.dockercfg: '{}'}\n",
		"metadata: {name: a}\ntype: kubernetes.io/dockerconfigjson\nstringData: {.dockerconfigjson: '{}'}\n",
		"metadata: {name: a}\ntype: kubernetes.io/dockerconfigjson\nstringData: {.dockerconfigjson: 's3cret'}\n",
		"metadata: {name: a}\ntype: kubernetes.io/dockerconfigjson\ndata: {.dockerconfigjson: \"\"}\n",
		"metadata: {name: a}\ntype: kubernetes.io/dockercfg\nstringData: {.dockercfg: '[]'}\n",
		"metadata: {name: a}\ntype: kubernetes.io/dockercfg\ndata: {k: YQ==}\n",
		"metadata: {name: a}\ntype: kubernetes.io/basic-auth\n",
		"metadata: {name: a}\ntype: kubernetes.io/basic-auth\nstringData: {password: a}\n",
		"metadata: {name: a}\ntype: kubernetes.io/ssh-auth\n",
		"metadata: {name: a}\ntype: kubernetes.io/ssh-auth\nstringData: {ssh-privatekey: \"\"}\n",
		"metadata: {name: a}\ntype: kubernetes.io/ssh-auth\nstringData: {ssh-privatekey: a}\n",
		"metadata: {name: a}\ntype: kubernetes.io/service-account-token\n",
		"metadata: {name: a, annotations: {kubernetes.io/service-account.name: sa}}\ntype: kubernetes.io/service-account-token\n",
		"metadata: {name: a}\nstringData: {k: " + strings.Repeat("x", 1<<20+1) + "}\n",
	},
	"PersistentVolumeClaim": {
		"metadata: {name: a}\n" + claimSpec,
		"metadata: {name: a}\n",
		"metadata: {name: A}\n" + claimSpec,
		"metadata: {name: a}\nspec: {resources: {requests: {storage: 1Gi}}}\n",
		"metadata: {name: a}\nspec: {accessModes: [ReadWriteOnce]}\n",
		"metadata: {name: a}\nspec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: -1Gi}}}\n",
		"metadata: {name: a}\nspec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 0}}}\n",
		"metadata: {name: a}\nspec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 500m}}}\n",
		"metadata: {name: a}\nspec: {accessModes: [RWO], resources: {requests: {storage: 1Gi}}}\n",
		"metadata: {name: a}\nspec: {accessModes: [ReadWriteOncePod, ReadWriteOnce], resources: {requests: {storage: 1Gi}}}\n",
		"metadata: {name: a}\nspec: {accessModes: [ReadWriteMany], resources: {requests: {storage: 1Gi}}, storageClassName: A_b}\n",
		"metadata: {name: a}\nspec: {accessModes: [ReadWriteMany], resources: {requests: {storage: 1Gi}}, storageClassName: \"\"}\n",
		"metadata: {name: a}\nspec: {accessModes: [ReadWriteMany], resources: {requests: {storage: 1Gi}}, volumeMode: File}\n",
		"metadata: {name: a}\n" +
			"spec: {accessModes: [ReadWriteMany], resources: {requests: {storage: 1Gi}}, " +
			"selector: {matchLabels: {\"a b\": c}}}\n",
		"metadata: {name: a}\n" +
			"spec: {accessModes: [ReadWriteMany], resources: {requests: {storage: 1Gi}}, dataSourceRef: {kind: Pod, " +
			"name: b}}\n",
		"metadata: {name: a}\n" +
			"spec: {accessModes: [ReadWriteMany], resources: {requests: {storage: 1Gi}}, dataSource: {kind: Pod, " +
			"name: b}}\n",
		"metadata: {name: a}\n" +
			"spec: {accessModes: [ReadWriteMany], resources: {requests: {storage: 1Gi}}, dataSourceRef: {kind: Pod, " +
			"name: b, namespace: c}}\n",
		"metadata: {name: a}\n" +
			"spec: {accessModes: [ReadWriteMany], resources: {requests: {storage: 1Gi}}, " +
			"dataSource: {kind: PersistentVolumeClaim, name: b}, dataSourceRef: {kind: PersistentVolumeClaim, " +
			"name: c}}\n",
		"metadata: {name: a}\n" +
			"spec: {accessModes: [ReadWriteMany], resources: {requests: {storage: 1Gi}}, " +
			"dataSourceRef: {kind: PersistentVolumeClaim}}\n",
		"metadata: {name: a}\n" +
			"spec: {accessModes: [ReadWriteMany], resources: {requests: {storage: 1Gi}}, " +
			"volumeAttributesClassName: A_b}\n",
	},
}

// apiErrors returns the API server's errors about a document, decoded, defaulted and converted by its own scheme, in
// the namespace of the request.
func apiErrors(t *testing.T, text string) field.ErrorList {
	t.Helper()
	object, _, err := legacyscheme.Codecs.UniversalDeserializer().Decode([]byte(text), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	legacyscheme.Scheme.Default(object)
	if object, err = legacyscheme.Scheme.ConvertToVersion(object, core.SchemeGroupVersion); err != nil {
		t.Fatal(err)
	}
	switch o := object.(type) {
	case *core.ConfigMap:
		o.Namespace = namespaceOr(o.Namespace)
		return validation.ValidateConfigMap(o)
	case *core.Secret:
		o.Namespace = namespaceOr(o.Namespace)
		return validation.ValidateSecret(o)
	case *core.PersistentVolumeClaim:
		o.Namespace = namespaceOr(o.Namespace)
		claimapi.DropDisabledFields(&o.Spec, nil)
		claimapi.EnforceDataSourceBackwardsCompatibility(&o.Spec, nil)
		return validation.ValidatePersistentVolumeClaim(o, validation.ValidationOptionsForPersistentVolumeClaimCreate())
	}
	t.Fatalf("%T", object)
	return nil
}

func namespaceOr(given string) string {
	if given == "" {
		return "default"
	}
	return given
}

// TestObjectsAreValidatedAsByTheAPIServer checks that exactly the API server's errors are reported.
func TestObjectsAreValidatedAsByTheAPIServer(t *testing.T) {
	for kind, texts := range objects {
		refused := 0
		for i, body := range texts {
			text := "apiVersion: v1\nkind: " + kind + "\n" + body
			var want, got []string
			for _, err := range apiErrors(t, text) {
				want = append(want, place(kind, err.Field))
			}
			m := parsed(t, text)
			for _, p := range m.Problems {
				if got = append(got, place(kind, p.Path)); p.Class != document.ClassInvalid || p.Detail == "" || p.Line == 0 {
					t.Errorf("%s %d: %+v", kind, i, p)
				}
			}
			if slices.Sort(want); len(want) > 0 {
				refused++
			}
			slices.Sort(got)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s %d: %.200s\n-API server +podctl\n%s\n%.1000s", kind, i, body, diff, problemsOf(m))
			}
			if strings.Contains(problemsOf(m), "s3cret") {
				t.Errorf("%s %d: %s", kind, i, problemsOf(m))
			}
		}
		if refused < 8 || len(texts)-refused < 2 {
			t.Errorf("%s: %d of %d refused", kind, refused, len(texts))
		}
	}
}

// place normalizes a path, because podctl shows a field at its place in the document, and omits parts of a Secret's
// path that could be a value.
func place(kind, path string) string {
	if path == "[]" {
		return "data"
	}
	parts := fieldpath.Split(strings.Replace(path, "spec.resources[", "spec.resources.requests[", 1))
	if kind == "Secret" {
		parts[0] = strings.Replace(parts[0], "stringData", "data", 1)
		if i := slices.Index(parts, "labels"); i > 0 {
			parts = parts[:i+1]
		}
	}
	return strings.Join(parts, " ")
}

// TestObjectProblemsNameTheMissingPart checks that a problem names the missing part, even if the path of a Secret does
// not.
func TestObjectProblemsNameTheMissingPart(t *testing.T) {
	const claimHead = "kind: PersistentVolumeClaim\nmetadata: {name: a}\nspec: {accessModes: [ReadWriteOnce], "
	for _, c := range []struct{ text, want string }{
		{
			"kind: Secret\nmetadata: {name: a}\ntype: kubernetes.io/tls\n",
			"the key tls.crt is required in a Secret of type kubernetes.io/tls",
		},
		{
			"kind: Secret\nmetadata: {name: a}\ntype: kubernetes.io/dockerconfigjson\n" +
				"stringData: {.dockerconfigjson: s3cret}\n",
			"-:5:14: stringData[.dockerconfigjson]: is not valid JSON, " +
				"which a Secret of type kubernetes.io/dockerconfigjson holds",
		},
		{
			"kind: Secret\nmetadata: {name: a}\ntype: kubernetes.io/service-account-token\n",
			"kubernetes.io/service-account.name is required",
		},
		{"kind: ConfigMap\nmetadata: {name: a}\ndata: {\"a/b\": x}\n", "-:4:8: data[a/b]: is not a valid key: "},
		{"kind: ConfigMap\nmetadata: {generateName: a-}\n", "-:3:12: metadata.generateName: is not a complete name"},
		{
			claimHead + "resources: {requests: {storage: -1Gi}}}\n",
			`-:4:61: spec.resources.requests[storage]: "-1Gi" is not valid: must be greater than zero`,
		},
		{claimHead + "resources: {requests: {storage: much}}}\n", `"much" is not a quantity`},
		{claimHead + "resources: {requests: {storage: 1}}, volumeMode: Block}\n", "a claim is a directory here"},
		{
			"kind: ConfigMap\nmetadata: {name: a}\ndata: {k: \"" + strings.Repeat("x", 1<<20+1) + "\"}\n",
			"-:4:1: data: is too long: may not be more than 1048576 bytes",
		},
	} {
		m := parsed(t, "apiVersion: v1\n"+c.text)
		reported := problemsOf(m)
		if !strings.Contains(reported, c.want) || (len(m.Problems) != 1 && !strings.Contains(c.text, "tls")) {
			t.Errorf("want %q in:\n%.500s", c.want, reported)
		}
	}
}

// TestGeneratedNames checks that a pod with generateName has one problem, and that its other fields are checked as with
// a complete name.
func TestGeneratedNames(t *testing.T) {
	for start, want := range map[string]int{"web-": 1, "web": 1, strings.Repeat("w", 80): 1, "Web-": 2} {
		m := parsed(t, strings.Replace(minimal, "  name: web\n", fmt.Sprintf("  generateName: %s\n", start), 1))
		if len(m.Problems) != want || !strings.Contains(problemsOf(m), "-:4:3: metadata.generateName: is not a complete name") {
			t.Errorf("%s:\n%s", start, problemsOf(m))
		}
	}
	m := parsed(t, strings.Replace(minimal, "  name: web\n", "  labels: {}\n", 1))
	if reported := problemsOf(m); !strings.HasSuffix(reported, "metadata.name: is required") {
		t.Errorf("no name:\n%s", reported)
	}
}
