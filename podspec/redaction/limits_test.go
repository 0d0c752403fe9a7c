package redaction

import (
	"fmt"
	"strings"
	"testing"
)

// TestAliasesAreNotWrittenOut checks that aliases are not expanded, and that their target is found.
func TestAliasesAreNotWrittenOut(t *testing.T) {
	long := strings.Repeat("x", 5000) + "kJ8vQ2mX9pLw4RtY7bNc" + strings.Repeat("y", 5000)
	value := "host: &a " + long + "\nb: [" + strings.Repeat("*a,", 2000) + "*a]\nserver: &s swordfish\npassword: *s\n"
	bomb := "a: &a [swordfish1, x]\n"
	for c := 'b'; c < 'z'; c++ {
		bomb += fmt.Sprintf("%c: &%c [%s]\n", c, c, strings.Repeat(fmt.Sprintf("*%c,", c-1), 9))
	}
	x := newIndex([][]byte{[]byte(value), []byte(bomb)})
	if bytes := len(x.pieces.Bytes()); bytes > 4*(len(value)+len(bomb)) {
		t.Errorf("%d bytes are looked for, of values of %d and %d", bytes, len(value), len(bomb))
	}
	if got := of(value, bomb).Text("it is swordfish, kJ8vQ2mX9pLw4RtY7bNc or swordfish1"); got != "it is (secret), (secret) or (secret)" {
		t.Error(got)
	}
}

// TestPartsAreBounded checks that a value with too many parts is found in pieces.
func TestPartsAreBounded(t *testing.T) {
	nested := "a=b"
	for range 4 {
		nested = strings.Repeat("k="+nested+" ", 9) + "@"
	}
	x := newIndex([][]byte{[]byte(nested)})
	if bytes := len(x.pieces.Bytes()); bytes > 4*maxGrowth*len(nested) {
		t.Errorf("%d bytes are looked for, of a value of %d", bytes, len(nested))
	}
}

// comparisons returns how many comparisons a text needs.
func comparisons(values []string, text string) int {
	all := make([][]byte, 0, len(values))
	for _, value := range values {
		all = append(all, []byte(value))
	}
	s := &scan{index: newIndex(all), hidden: make([]bool, len(text))}
	s.read(viewOf(text), maxEncodings)
	return s.compared
}

// TestManyValuesAreFewComparisons checks that values with the same beginning are not compared one by one.
func TestManyValuesAreFewComparisons(t *testing.T) {
	var short, documents []string
	for i := range 3000 {
		short = append(short, fmt.Sprintf("aaaa%05d", i))
		documents = append(documents, fmt.Sprintf(`{"a":[{"aaaa":%d}]}`, i))
	}
	short = append(short, short...)
	for name, tt := range map[string]struct {
		values []string
		text   string
	}{
		"short":     {short, strings.Repeat("aaaa", 200) + "aaaa00041"},
		"documents": {documents, strings.Repeat(`{"a":[`, 200) + documents[41]},
	} {
		if n := comparisons(tt.values, tt.text); n > 100*len(tt.text) {
			t.Errorf("%s: %d comparisons for a text of %d bytes", name, n, len(tt.text))
		}
		if got := of(tt.values...).Text(tt.text); !strings.HasSuffix(got, Hidden) {
			t.Errorf("%s: %.200q", name, got)
		}
	}
}
