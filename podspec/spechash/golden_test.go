package spechash

import (
	"encoding/json"
	"path/filepath"
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/podspec/podspectest"
)

// eachRow calls visit with every row of a recorded file, and returns the number of rows.
func eachRow[R any](t *testing.T, file string, visit func(*R)) (rows int) {
	t.Helper()
	podspectest.EachRow(t, filepath.Join("testdata", file), func(line []byte) {
		var row R
		if err := json.Unmarshal(line, &row); err != nil {
			t.Fatal(err)
		}
		rows++
		visit(&row)
	})
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
