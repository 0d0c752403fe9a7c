package podspectest

import (
	"bufio"
	"compress/gzip"
	"os"
	"testing"
)

// EachRow calls visit for each line of a gzipped file of recorded rows. The test fails if the file has none.
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
	rows := 0
	for ; lines.Scan(); rows++ {
		visit(lines.Bytes())
	}
	if rows == 0 || lines.Err() != nil {
		t.Fatalf("%s: %d rows: %v", path, rows, lines.Err())
	}
}
