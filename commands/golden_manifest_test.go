package commands

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/podctl/podctl/commands/exit"
	"github.com/podctl/podctl/podspec/document"
	"github.com/podctl/podctl/podspec/podspectest"
)

// TestRenderPrintsTheAPIServersDefaults compares `render` with recorded pods.
func TestRenderPrintsTheAPIServersDefaults(t *testing.T) {
	type row struct {
		ID        string  `json:"id"`
		Manifest  string  `json:"manifest"`
		Defaulted *v1.Pod `json:"defaulted"`
		Valid     bool    `json:"valid"`
	}
	compared := 0
	podspectest.EachRow(t, "testdata/defaults.train.jsonl.gz", func(line []byte) {
		var r row
		if err := json.Unmarshal(line, &r); err != nil {
			t.Fatal(err)
		}
		code, out, errs := call(t, r.Manifest, "render", "-o", "json", "-")
		switch {
		case !r.Valid && code == exit.Refused:
			return
		case code == exit.Refused && strings.Contains(errs, "unknown field"):
			// The kubelet drops unknown fields. podctl refuses them.
			return
		case code != exit.OK:
			t.Errorf("%s: exit code %d: %s", r.ID, code, errs)
			return
		}
		compared++
		got := &v1.Pod{}
		if err := json.Unmarshal([]byte(out), got); err != nil {
			t.Fatal(err)
		}
		got.TypeMeta, r.Defaulted.TypeMeta = v1.Pod{}.TypeMeta, v1.Pod{}.TypeMeta
		store(r.Defaulted)
		if !equality.Semantic.DeepEqual(got, r.Defaulted) {
			t.Errorf("%s: -api server +podctl\n%s", r.ID, gocmp.Diff(r.Defaulted, got))
		}
	})
	if compared < 40 {
		t.Errorf("only %d pods were compared", compared)
	}
}

// store applies the changes that the API server makes after the recorded defaults.
func store(pod *v1.Pod) {
	if pod.Namespace == "" {
		pod.Namespace = v1.NamespaceDefault
	}
	pod.Spec.DeprecatedServiceAccount = pod.Spec.ServiceAccountName
}

// TestValidateAgreesWithTheAPIServer compares the field paths of `validate -o json` with those of the API
// server.
func TestValidateAgreesWithTheAPIServer(t *testing.T) {
	type row struct {
		ID       string `json:"id"`
		Manifest string `json:"manifest"`
		Errors   []struct {
			Field string `json:"field"`
		} `json:"errors"`
		DecodeError string `json:"decodeError"`
	}
	refused, accepted := 0, 0
	rules := differing(t, "testdata/validation.differ.txt")
	podspectest.EachRow(t, "testdata/validation.train.jsonl.gz", func(line []byte) {
		var r row
		if err := json.Unmarshal(line, &r); err != nil {
			t.Fatal(err)
		}
		code, out, errs := call(t, r.Manifest, "validate", "-o", "json", "-")
		var doc struct{ Problems []document.Problem }
		if err := json.Unmarshal([]byte(out), &doc); err != nil {
			t.Fatalf("%s: %v %s", r.ID, err, errs)
		}
		var got, want []string
		for _, p := range doc.Problems {
			if p.Class == document.ClassInvalid {
				got = append(got, p.Path)
			}
			if p.Line == 0 || p.Detail == "" {
				t.Errorf("%s: no place or no word for %s", r.ID, p)
			}
		}
		for _, e := range r.Errors {
			// podctl accepts ephemeral containers in the manifest (docs/differences.md).
			if e.Field != "spec.ephemeralContainers" {
				want = append(want, e.Field)
			}
		}
		slices.Sort(got)
		slices.Sort(want)
		if rule, listed := rules[r.ID]; listed {
			if slices.Equal(got, want) {
				t.Errorf("%s: agrees with the API server and is listed as differing (%s)", r.ID, rule)
			}
			return
		}
		switch {
		case r.DecodeError != "":
			refused++
			if code != exit.Refused {
				t.Errorf("%s: accepted, although it does not decode: %s", r.ID, r.DecodeError)
			}
		case !slices.Equal(got, want):
			t.Errorf("%s: -api server +podctl\n%s", r.ID, gocmp.Diff(want, got))
		case len(want) == 0:
			accepted++
		default:
			refused++
		}
	})
	if refused < 100 || accepted < 20 {
		t.Errorf("only %d refused and %d accepted manifests were compared", refused, accepted)
	}
}
