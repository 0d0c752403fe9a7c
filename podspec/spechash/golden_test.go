package spechash

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	v1 "k8s.io/api/core/v1"
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
		if got := Kubelet(&r.Container); got != r.Want {
			t.Errorf("%s: hash %s, the kubelet's is %s", r.ID, got, r.Want)
		}
	})
}
