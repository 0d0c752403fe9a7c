package podspec

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

// eachRow calls visit for every row of a recorded file.
func eachRow[R any](t *testing.T, file string, visit func(*R)) int {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", file))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(z)
	lines.Buffer(nil, 64<<20)
	rows := 0
	for lines.Scan() {
		var row R
		if err := json.Unmarshal(lines.Bytes(), &row); err != nil {
			t.Fatal(err)
		}
		rows++
		visit(&row)
	}
	if lines.Err() != nil || rows == 0 {
		t.Fatalf("%s: %d rows: %v", file, rows, lines.Err())
	}
	return rows
}

func TestContainerHashIsTheKubelets(t *testing.T) {
	type row struct {
		ID        string       `json:"id"`
		Container v1.Container `json:"container"`
		Want      string       `json:"kubeletHash136"`
	}
	eachRow(t, "hash.train.jsonl.gz", func(r *row) {
		if got := ContainerHash(&r.Container); got != r.Want {
			t.Errorf("%s: hash %s, the kubelet's is %s", r.ID, got, r.Want)
		}
	})
}

func TestDefaultsAreTheAPIServers(t *testing.T) {
	type row struct {
		ID        string  `json:"id"`
		Manifest  string  `json:"manifest"`
		Defaulted *v1.Pod `json:"defaulted"`
	}
	eachRow(t, "defaults.train.jsonl.gz", func(r *row) {
		docs := splitDocuments(source{name: r.ID, text: []byte(r.Manifest)})
		if problems := docs[0].parse(); len(problems) > 0 {
			t.Fatalf("%s: %v", r.ID, problems)
		}
		got := &v1.Pod{}
		for _, p := range docs[0].decodeInto(got) {
			// The kubelet drops unknown fields; podctl refuses them.
			if !strings.HasPrefix(p.Detail, "unknown field") {
				t.Errorf("%s: %v", r.ID, p)
			}
		}
		uid, namespace := got.UID, got.Namespace
		setDefaults(got)
		got.UID, got.Namespace = uid, namespace
		got.TypeMeta, r.Defaulted.TypeMeta = v1.Pod{}.TypeMeta, v1.Pod{}.TypeMeta
		if !equality.Semantic.DeepEqual(got, r.Defaulted) {
			t.Errorf("%s: (-api server +podctl)\n%s", r.ID, cmp.Diff(r.Defaulted, got))
		}
	})
}

func TestValidationIsTheAPIServers(t *testing.T) {
	type row struct {
		ID       string `json:"id"`
		Manifest string `json:"manifest"`
		Errors   []struct {
			Field string `json:"field"`
		} `json:"errors"`
		DecodeError string `json:"decodeError"`
	}
	eachRow(t, "validation.train.jsonl.gz", func(r *row) {
		a := &assembly{}
		a.addSource(source{name: r.ID, text: []byte(r.Manifest)})
		var got, refused []string
		for _, p := range a.manifest().Problems {
			if p.Class != ClassUnresolved {
				refused = append(refused, p.Path)
			}
			if p.Class == ClassInvalid {
				got = append(got, p.Path)
			}
			if p.Class == ClassInvalid && p.Line == 0 {
				t.Errorf("%s: no place for %s", r.ID, p)
			}
		}
		var want []string
		for _, e := range r.Errors {
			want = append(want, e.Field)
		}
		if r.DecodeError != "" {
			if len(refused) == 0 {
				t.Errorf("%s: accepted, although it does not decode: %s", r.ID, r.DecodeError)
			}
			return
		}
		if slices.Sort(want); !covers(got, want) {
			t.Errorf("%s: refused at %v, the API server refuses at %v\n%s", r.ID, got, want, r.Manifest)
		}
	})
}

// covers tells that every wanted path is among those found, and that nothing is
// found where nothing is wanted.
func covers(got, want []string) bool {
	if len(want) == 0 {
		return len(got) == 0
	}
	for _, path := range want {
		if !slices.ContainsFunc(got, func(g string) bool { return strings.HasPrefix(g, path) || strings.HasPrefix(path, g) }) {
			return false
		}
	}
	return true
}
