package terminal

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTable(t *testing.T) {
	for name, c := range map[string]struct {
		header []string
		rows   [][]string
		want   string
	}{
		"escaped, without trailing blanks": {
			header: []string{"A", "LONG"}, rows: [][]string{{"value", "x"}, {"y\x1b", ""}},
			want: "A       LONG\nvalue   x\ny\\x1b\n",
		},
		"characters of two columns": {
			header: []string{"NAME", "X"}, rows: [][]string{{"世界世", "1"}, {"é", "2"}},
			want: "NAME     X\n世界世   1\né        2\n",
		},
		"lines and blanks in cells": {
			header: []string{"A", "B"}, rows: [][]string{{" a\nb ", "\tc"}},
			want: "A     B\na b   c\n",
		},
		"no headers":          {rows: [][]string{{"a", "b"}}, want: "a   b\n"},
		"no rows":             {header: []string{"A", "B"}, want: "A   B\n"},
		"no headers, no rows": {},
	} {
		t.Run(name, func(t *testing.T) {
			var b bytes.Buffer
			if err := Table(&b, c.header, c.rows); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, b.String()); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}
