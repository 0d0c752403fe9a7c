package structure

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

var (
	// link matches a link to a file or a section, as in [text](file.md#section) or [name]: file.md.
	link = regexp.MustCompile(`\]\(([^)\s]+)\)|(?m:^\[[^\]]+\]: (\S+))`)
	// codeBlock matches a block of code, whose lines are no headings.
	codeBlock = regexp.MustCompile("(?ms:^```.*?^```)")
	heading   = regexp.MustCompile(`(?m)^#+ (.*)$`)
	// linkText matches a link in a heading, whose text belongs to the heading.
	linkText = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	// notInAnchor matches the characters that are left out of the anchor of a heading.
	notInAnchor = regexp.MustCompile(`[^\p{L}\p{N}_\- ]`)
)

// TestLinksOfDocuments checks that each link of a document to a file of this repository, or to a section of one, has
// a target.
func TestLinksOfDocuments(t *testing.T) {
	links := 0
	for _, c := range documents(t) {
		for _, found := range link.FindAllStringSubmatch(c.text, -1) {
			target := found[1] + found[2]
			if strings.Contains(target, "://") {
				continue
			}
			links++
			if problem := checkLink(c.at, target); problem != "" {
				t.Errorf("%s: link to %s: %s", c.at, target, problem)
			}
		}
	}
	if links == 0 {
		t.Error("no document has a link")
	}
}

// checkLink returns why a link of a document has no target, or "".
func checkLink(document, target string) string {
	file, section, inFile := strings.Cut(target, "#")
	name := document
	if file != "" {
		name = path.Join(path.Dir(document), file)
	}
	text, err := os.ReadFile(filepath.Join(root, name))
	switch {
	case err != nil && !inFile && isDir(filepath.Join(root, name)):
		return ""
	case err != nil:
		return "the file does not exist"
	case inFile && !anchors(string(text))[section]:
		return "the file has no such section"
	}
	return ""
}

func isDir(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.IsDir()
}

// anchors returns the anchors of the headings in a document, as renderers of Markdown on web pages compute them.
func anchors(text string) map[string]bool {
	found := map[string]bool{}
	for _, h := range heading.FindAllStringSubmatch(codeBlock.ReplaceAllString(text, ""), -1) {
		anchor := linkText.ReplaceAllString(strings.TrimSpace(h[1]), "$1")
		anchor = strings.ReplaceAll(notInAnchor.ReplaceAllString(strings.ToLower(anchor), ""), " ", "-")
		for n, base := 1, anchor; found[anchor]; n++ {
			anchor = base + "-" + strconv.Itoa(n)
		}
		found[anchor] = true
	}
	return found
}
