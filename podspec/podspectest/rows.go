package runtimetest

import (
	"bufio"
	"compress/gzip"
	"os"
	"testing"
)

// EachRow calls visit with each line of a gzipped file of recorded rows.
func EachRow(t *testing.T, path string, visit func(line []byte)) {
	t.Helper()
	f, err := os.Open(path)
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
	for lines.Scan() {
		visit(lines.Bytes())
	}
	if lines.Err() != nil {
		t.Fatal(lines.Err())
	}
}
