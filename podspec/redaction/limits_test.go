package redaction

import (
	"fmt"
	"strings"
	"testing"
)

// TestAliasesAreNotWrittenOut: a document in which one text stands for many is as large as it
// is written, and its text is found.
func TestAliasesAreNotWrittenOut(t *testing.T) {
	long := strings.Repeat("x", 5000) + "kJ8vQ2mX9pLw4RtY7bNc" + strings.Repeat("y", 5000)
	value := "host: &a " + long + "\nb: [" + strings.Repeat("*a,", 2000) + "*a]\nserver: &s swordfish\npassword: *s\n"
	bomb := "a: &a [swordfish1, x]\n"
	for c := 'b'; c < 'z'; c++ {
		bomb += fmt.Sprintf("%c: &%c [%s]\n", c, c, strings.Repeat(fmt.Sprintf("*%c,", c-1), 9))
	}
	x := newIndex([][]byte{[]byte(value), []byte(bomb)})
	bytes := 0
	for _, form := range x.forms {
		bytes += len(form)
	}
	if bytes > 4*(len(value)+len(bomb)) {
		t.Errorf("%d bytes are looked for, of values of %d and %d", bytes, len(value), len(bomb))
	}
	if got := of(value, bomb).Text("it is swordfish, kJ8vQ2mX9pLw4RtY7bNc or swordfish1"); got != "it is (secret), (secret) or (secret)" {
		t.Error(got)
	}
}

// TestPartsAreBounded: of a value with more parts than are looked for, the rest is found in
// pieces.
func TestPartsAreBounded(t *testing.T) {
	p := &parts{seen: map[part]bool{}, bytes: maxBytes - 100}
	value := "password: kJ8vQ2mX9pLw4RtY7bNc\nother: " + strings.Repeat("abcdefg-", 40) + "\nlast: Zf6Gz1AeU-0042\n"
	leaves := p.of(value)
	if p.structured || len(leaves) == 0 || leaves[len(leaves)-1].text != strings.TrimSpace(value) {
		t.Errorf("what did not fit is not looked for: %d parts", len(leaves))
	}
	if leaves = p.of("another-long-value-" + strings.Repeat("0123456789", 30)); len(leaves) != 1 {
		t.Errorf("%d parts of a value after those that are full", len(leaves))
	}
	nested := "a=b"
	for range 4 {
		nested = strings.Repeat("k="+nested+" ", 9) + "@"
	}
	x := newIndex([][]byte{[]byte(nested)})
	bytes := 0
	for _, form := range x.forms {
		bytes += len(form)
	}
	if bytes > 4*maxGrowth*len(nested) {
		t.Errorf("%d bytes are looked for, of a value of %d", bytes, len(nested))
	}
}

// comparisons is how many values are compared with parts of a text.
func comparisons(values []string, text string) int {
	all := make([][]byte, 0, len(values))
	for _, value := range values {
		all = append(all, []byte(value))
	}
	s := &scan{index: newIndex(all), hidden: make([]bool, len(text))}
	s.read(viewOf(text), maxEncodings)
	return s.compared
}

// TestManyValuesAreFewComparisons: values that begin alike are not compared one by one.
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

// TestWholesWithinWholes: the longest of values that begin alike is found, and each of them.
func TestWholesWithinWholes(t *testing.T) {
	w := newWholes([][]byte{[]byte("{}{}"), []byte("{}{}[]"), []byte("{}{}[]{}"), []byte("{}{}[x]"), []byte("{}{}")})
	for text, want := range map[string]int{"{}{}": 4, "{}{}[": 4, "{}{}[]": 6, "{}{}[]{": 6, "{}{}[]{}": 8, "{}{}[]{}z": 8, "{}{}[x": 4, "{}{}z": 4, "{}{x": 0, "xxxx": 0} {
		if got, _ := w.at([]byte(text)); got != want {
			t.Errorf("%q begins with one of %d bytes, want %d", text, got, want)
		}
	}
}
