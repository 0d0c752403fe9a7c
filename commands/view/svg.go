package view

import (
	"fmt"
	"io"
	"strings"
)

// writePicture writes a picture on a white ground; its size is in pixels.
func writePicture(w io.Writer, width, height int, body string) error {
	_, err := fmt.Fprintf(w, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="12">`+"\n"+
		`<rect width="100%%" height="100%%" fill="white"/>`+"\n%s</svg>\n", width, height, body)
	return err
}

// xmlText makes a text safe inside a picture: what XML cannot hold is left out.
func xmlText(text string) string {
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == 0xfffe || r == 0xffff {
			return ' '
		}
		return r
	}, text)
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;").Replace(text)
}
