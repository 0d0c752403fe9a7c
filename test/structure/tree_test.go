package structure

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

const (
	root   = "../.."
	module = "github.com/podctl/podctl/"
)

// tree is the repository, as far as the rules need it.
type tree struct {
	packages map[string]*pkg
	files    map[string]bool // every file with code, by path
	words    map[string]bool // every word of the code outside of comments
}

// pkg is a directory with Go code.
type pkg struct {
	dir      string
	ofModule bool // in this module; the benchmarks and the tests with a kubelet are separate modules
	files    int  // without tests
	imports  map[string]bool
	methods  map[string][]string // the file of each method, by receiver
	comments []comment
	messages []comment
	names    []comment // the words of each name, for example "read Tree" of readTree
}

// comment is a comment, or a line of a document.
type comment struct {
	at   string
	dir  string
	text string
	test bool
}

var word = regexp.MustCompile(`\w+`)

// readTree reads the repository once for all tests.
func readTree(t *testing.T) *tree {
	t.Helper()
	tr, err := readOnce()
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

var readOnce = sync.OnceValues(func() (*tree, error) {
	tr := &tree{packages: map[string]*pkg{}, files: map[string]bool{}, words: map[string]bool{}}
	modules := map[string]bool{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		name := d.Name()
		switch {
		case err != nil:
			return err
		case d.IsDir() && isSkipped(path, name):
			return fs.SkipDir
		case name == "go.mod":
			modules[strings.TrimPrefix(filepath.Dir(path), root+"/")] = true
		case strings.HasSuffix(name, ".go"):
			return tr.read(strings.TrimPrefix(path, root+"/"))
		}
		return nil
	})
	for dir, p := range tr.packages {
		for m := range modules {
			p.ofModule = p.ofModule && dir != m && !strings.HasPrefix(dir, m+"/")
		}
	}
	return tr, err
})

// isSkipped reports whether the tests skip a directory: hidden ones, built programs, and data of tests.
func isSkipped(path, name string) bool {
	return path != root && (strings.HasPrefix(name, ".") || name == "bin" || name == "testdata")
}

// read adds one file of Go code.
func (tr *tree) read(path string) error {
	text, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		return err
	}
	set := token.NewFileSet()
	f, err := parser.ParseFile(set, path, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	dir, test := filepath.Dir(path), strings.HasSuffix(path, "_test.go")
	p := tr.packages[dir]
	if p == nil {
		p = &pkg{dir: dir, ofModule: true, imports: map[string]bool{}, methods: map[string][]string{}}
		tr.packages[dir] = p
	}
	tr.files[path] = true
	tr.addWords(f)
	p.addMessages(f, set)
	for _, group := range f.Comments {
		p.comments = append(p.comments, comment{set.Position(group.Pos()).String(), dir, group.Text(), test})
	}
	if !test {
		p.add(f, filepath.Base(path))
	}
	return nil
}

// add adds the data for the limits and the layers.
func (p *pkg) add(f *ast.File, name string) {
	p.files++
	for _, spec := range f.Imports {
		path, _ := strconv.Unquote(spec.Path.Value)
		p.imports[path] = true
	}
	for _, decl := range f.Decls {
		if fn, ok := decl.(*ast.FuncDecl); ok && fn.Recv != nil {
			receiver := receiverName(fn.Recv.List[0].Type)
			p.methods[receiver] = append(p.methods[receiver], name)
		}
	}
}

func receiverName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiverName(e.X)
	case *ast.IndexExpr:
		return receiverName(e.X)
	case *ast.Ident:
		return e.Name
	default:
		return "?"
	}
}

// addWords adds the names in a file, and the words in its strings.
func (tr *tree) addWords(f *ast.File) {
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CommentGroup:
			return false
		case *ast.Ident:
			tr.words[n.Name] = true
		case *ast.BasicLit:
			if n.Kind == token.STRING {
				for _, w := range word.FindAllString(n.Value, -1) {
					tr.words[w] = true
				}
			}
		}
		return true
	})
}

// addMessages adds the strings in a file that contain a space: messages, help and names of tests. It also adds the
// words of its names, and of the JSON keys in tags.
func (p *pkg) addMessages(f *ast.File, set *token.FileSet) {
	add := func(all *[]comment, pos token.Pos, text string) {
		*all = append(*all, comment{at: set.Position(pos).String(), dir: p.dir, text: text})
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BasicLit:
			switch {
			case strings.HasPrefix(n.Value, "`json:"):
				add(&p.names, n.Pos(), wordsOf(n.Value))
			case n.Kind == token.STRING && strings.Contains(n.Value, " "):
				add(&p.messages, n.Pos(), n.Value)
			}
		case *ast.Ident:
			add(&p.names, n.Pos(), wordsOf(n.Name))
		}
		return true
	})
}

var (
	// endOfCapitals and endOfWord match the places in a name where the next word begins.
	endOfCapitals = regexp.MustCompile(`([A-Z])([A-Z][a-z])`)
	endOfWord     = regexp.MustCompile(`([a-z0-9])([A-Z])`)
)

// wordsOf separates the words of a name in mixed case.
func wordsOf(name string) string {
	return endOfWord.ReplaceAllString(endOfCapitals.ReplaceAllString(name, "$1 $2"), "$1 $2")
}

// texts returns the comments and messages of the code.
func (tr *tree) texts() []comment {
	all := tr.comments()
	for _, p := range tr.packages {
		all = append(all, p.messages...)
	}
	return all
}

// own returns the packages of this module in order.
func (tr *tree) own() []*pkg {
	var all []*pkg
	for _, p := range tr.packages {
		if p.ofModule {
			all = append(all, p)
		}
	}
	slices.SortFunc(all, func(a, b *pkg) int { return strings.Compare(a.dir, b.dir) })
	return all
}

// rule is one line of rules.txt: a name, marks in brackets, and words.
type rule struct {
	name  string
	marks []string
	words []string
}

// readRules returns the rules by section in order. A line that begins with a tab continues the line before.
func readRules(t *testing.T) map[string][]rule {
	t.Helper()
	text, err := os.ReadFile("rules.txt")
	if err != nil {
		t.Fatal(err)
	}
	all, section := map[string][]rule{}, ""
	for line := range strings.Lines(strings.ReplaceAll(string(text), "\n\t", " ")) {
		line = strings.TrimSpace(line)
		head, words, isRule := strings.Cut(line, ":")
		switch name, marks, _ := strings.Cut(strings.TrimSuffix(head, ")"), " ("); {
		case line == "" || strings.HasPrefix(line, "#"):
		case strings.HasPrefix(line, "["):
			section = strings.Trim(line, "[]")
		case !isRule:
			t.Fatalf("rules.txt: no colon in %q", line)
		default:
			all[section] = append(all[section], rule{name, strings.Fields(marks), strings.Fields(words)})
		}
	}
	return all
}
