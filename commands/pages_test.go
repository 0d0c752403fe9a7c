package commands

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/podctl/podctl/commands/commandstest"
)

// page is a document for users or developers, without the pages that gendocs writes.
type page struct {
	path string
	// text is the text, prose the text without the lines of code blocks, and code these lines. Both keep the line
	// breaks of the text.
	text, prose, code string
}

// readPages returns the documents of the repository.
func readPages(t *testing.T) []page {
	t.Helper()
	var pages []page
	for _, pattern := range []string{"../*.md", "../docs/*.md"} {
		paths, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			pages = append(pages, readPage(t, path))
		}
	}
	if len(pages) < 15 {
		t.Fatalf("only %d documents were found", len(pages))
	}
	return pages
}

// readPage reads a document and separates its code blocks from its prose.
func readPage(t *testing.T, path string) page {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	p := page{path: path, text: string(text)}
	fenced := false
	for line := range strings.Lines(p.text) {
		fence := strings.HasPrefix(strings.TrimSpace(line), "```")
		if fenced = fenced != fence; fence || fenced || strings.HasPrefix(line, "    ") {
			p.code, p.prose = p.code+line, p.prose+"\n"
		} else {
			p.code, p.prose = p.code+"\n", p.prose+line
		}
	}
	return p
}

// at returns the place of an offset in one of the texts of a page.
func (p *page) at(text string, offset int) string {
	return fmt.Sprintf("%s:%d", p.path, 1+strings.Count(text[:offset], "\n"))
}

// span matches code in backquotes.
var span = regexp.MustCompile("`[^`]+`")

// visitLines calls visit for each line of code blocks, and for each code in backquotes.
func (p *page) visitLines(visit func(at, line string)) {
	offset := 0
	for line := range strings.Lines(p.code) {
		visit(p.at(p.code, offset), line)
		offset += len(line)
	}
	for _, found := range span.FindAllStringIndex(p.prose, -1) {
		visit(p.at(p.prose, found[0]), unquote(p.prose[found[0]:found[1]]))
	}
}

// unquote removes the backquotes of code, and the escapes that a table needs.
func unquote(code string) string {
	return strings.Join(strings.Fields(strings.ReplaceAll(strings.Trim(code, "`"), `\|`, "|")), " ")
}

var (
	separator = regexp.MustCompile(`&&|\|\||[|;]`)
	// prompt matches the words before the program of a command line.
	prompt      = regexp.MustCompile(`^(\$|sudo|[A-Z_]+=\S*)$`)
	redirection = regexp.MustCompile(`^[<>]`)
)

// calls returns the arguments of each call of a program in a line of shell.
func calls(program, line string) (all [][]string) {
	line, _, _ = strings.Cut(line, " #")
	for _, command := range separator.Split(line, -1) {
		words := strings.Fields(strings.NewReplacer("'", "", `"`, "").Replace(command))
		for len(words) > 0 && prompt.MatchString(words[0]) {
			words = words[1:]
		}
		if i := slices.IndexFunc(words, redirection.MatchString); i > 0 {
			words = words[:i]
		}
		if len(words) > 1 && words[0] == program {
			all = append(all, words[1:])
		}
	}
	return all
}

// TestPagesNameCommands checks the command lines of podctl in the documents, as TestHintsNameCommands checks those in
// the code. Code that names a command with a flag may leave out the word podctl, and the value of the flag.
func TestPagesNameCommands(t *testing.T) {
	root, seen := New(&Env{Getenv: func(string) string { return "" }}), 0
	for _, p := range readPages(t) {
		p.visitLines(func(at, line string) {
			word, _, _ := strings.Cut(line, " ")
			short := strings.Contains(line, " --") && isCommand(root, word)
			if short {
				line = "podctl " + line
			}
			for _, words := range calls("podctl", line) {
				if words[0] == "X" || line == "podctl does not run" {
					continue // The first stands for any command. The second is a message.
				}
				seen++
				err := checkLine(words)
				if err != nil && short {
					err = checkLine(append(words, "X"))
				}
				if err != nil {
					t.Errorf("%s: %s: %v", at, strings.TrimSpace(line), err)
				}
			}
		})
	}
	if seen < 200 {
		t.Errorf("only %d command lines were found", seen)
	}
}

func isCommand(root *cobra.Command, word string) bool {
	return slices.ContainsFunc(root.Commands(), func(c *cobra.Command) bool { return c.Name() == word })
}

var longFlag = regexp.MustCompile(`^--([a-z][a-z-]+)`)

// TestPagesNameFlags checks that each flag in backquotes belongs to a command, if it stands there without one.
func TestPagesNameFlags(t *testing.T) {
	known := map[string]bool{"root-dir": true, "eviction-minimum-reclaim": true} // These belong to the kubelet.
	commandstest.Walk(New(&Env{Getenv: func(string) string { return "" }}), func(cmd *cobra.Command) {
		for _, set := range []*pflag.FlagSet{cmd.LocalFlags(), cmd.InheritedFlags()} {
			set.VisitAll(func(f *pflag.Flag) { known[f.Name] = true })
		}
	})
	seen := 0
	for _, p := range readPages(t) {
		for _, found := range span.FindAllStringIndex(p.prose, -1) {
			words := strings.Fields(unquote(p.prose[found[0]:found[1]]))
			if len(words) == 0 || !strings.HasPrefix(words[0], "--") {
				continue
			}
			for _, word := range words {
				if name := longFlag.FindStringSubmatch(word); name != nil {
					seen++
					if !known[name[1]] {
						t.Errorf("%s: no command has the flag %s", p.at(p.prose, found[0]), word)
					}
				}
			}
		}
	}
	if seen < 80 {
		t.Errorf("only %d flags were found", seen)
	}
}

// TestPagesNameTargets checks that each target of make in the documents is in the Makefile.
func TestPagesNameTargets(t *testing.T) {
	known, rule := map[string]bool{}, regexp.MustCompile(`(?m)^([a-z][a-z0-9-]*):`)
	for _, found := range rule.FindAllStringSubmatch(contentsOf(t, "../Makefile"), -1) {
		known[found[1]] = true
	}
	seen := 0
	for _, p := range readPages(t) {
		p.visitLines(func(at, line string) {
			for _, words := range calls("make", line) {
				for _, word := range words {
					if strings.HasPrefix(word, "-") || strings.Contains(word, "=") {
						continue
					}
					seen++
					if !known[word] {
						t.Errorf("%s: the Makefile has no target %s", at, word)
					}
				}
			}
		})
	}
	if seen < 40 {
		t.Errorf("only %d targets were found", seen)
	}
}

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ (.*)$`)
)

// TestLinksOfPages checks that the files and headings exist to which the documents link.
func TestLinksOfPages(t *testing.T) {
	seen := 0
	for _, p := range readPages(t) {
		for _, found := range link.FindAllStringSubmatchIndex(p.prose, -1) {
			target := p.prose[found[2]:found[3]]
			if strings.Contains(target, "://") {
				continue
			}
			seen++
			file, anchor, hasAnchor := strings.Cut(target, "#")
			path := p.path
			if file != "" {
				path = filepath.Join(filepath.Dir(p.path), file)
			}
			if _, err := os.Stat(path); err != nil {
				t.Errorf("%s: %s: %v", p.at(p.prose, found[0]), target, err)
			} else if hasAnchor && !slices.Contains(anchorsOf(t, path), anchor) {
				t.Errorf("%s: %s has no heading #%s", p.at(p.prose, found[0]), path, anchor)
			}
		}
	}
	if seen < 100 {
		t.Errorf("only %d links were found", seen)
	}
}

// anchorsOf returns the anchors of the headings of a document: in lower case, with hyphens for spaces.
func anchorsOf(t *testing.T, path string) []string {
	t.Helper()
	p := readPage(t, path)
	var anchors []string
	for _, found := range heading.FindAllStringSubmatch(p.prose, -1) {
		text := strings.ToLower(link.ReplaceAllString(found[1], ""))
		text = regexp.MustCompile(`[^\p{L}\p{N}_ -]`).ReplaceAllString(text, "")
		anchors = append(anchors, strings.ReplaceAll(text, " ", "-"))
	}
	return anchors
}
