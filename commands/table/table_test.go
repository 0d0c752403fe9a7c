package table

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWriteHasNoTrailingBlanks(t *testing.T) {
	var b bytes.Buffer
	if err := Write(&b, []string{"A", "LONG"}, [][]string{{"value", "x"}, {"y\x1b", ""}}); err != nil {
		t.Fatal(err)
	}
	want := "A       LONG\nvalue   x\ny\\x1b\n"
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
