package terminal

import "testing"

// FuzzPrintable: a printable text moves no cursor, changes no colour and does not change the writing direction.
func FuzzPrintable(f *testing.F) {
	for _, seed := range []string{
		"plain\n\ttext", "\x1b[31m", "\x9b1m", "\u009b", "\u202eevil\u2066", "\x00\x7f\r\x08", "\u2028",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, r := range Printable(text) {
			if (r < 0x20 && r != '\n' && r != '\t') || (r >= 0x7f && r < 0xa0) || (r >= 0x2028 && r <= 0x202e) ||
				(r >= 0x2066 && r <= 0x2069) {
				t.Errorf("%q prints %q", text, r)
			}
		}
	})
}
