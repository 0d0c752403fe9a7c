package structure

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestLayers checks that each package imports exactly the packages of podctl that rules.txt lists, and only those below
// it there.
func TestLayers(t *testing.T) {
	tr, rules := readTree(t), readRules(t)["packages"]
	place := map[string]int{}
	for i, r := range rules {
		place[r.name] = i + 1
	}
	for _, p := range tr.own() {
		var imports []string
		for path := range p.imports {
			if dir, own := strings.CutPrefix(path, module); own {
				imports = append(imports, dir)
			}
		}
		slices.Sort(imports)
		i := place[p.dir]
		if i == 0 || !slices.Equal(rules[i-1].words, imports) {
			t.Errorf("rules.txt differs from the imports of %s. If they are right, its rule is\n%s: %s",
				p.dir, p.dir, strings.Join(imports, " "))
		}
		for _, dir := range imports {
			if place[dir] < i {
				t.Errorf("%s imports %s, which stands above it in rules.txt", p.dir, dir)
			}
		}
	}
	for dir := range place {
		if tr.packages[dir] == nil {
			t.Errorf("rules.txt has %s, which does not exist", dir)
		}
	}
}

// acting matches packages with effects outside of the process or with random results.
var acting = regexp.MustCompile(`^(os|net|net/http|syscall|os/.*|math/rand.*|golang\.org/x/sys/.*|google\.golang\.org/grpc.*)$`)

// TestPurePackages checks that packages marked as still import nothing that reads, writes or calls. Packages marked as
// pure must also import only pure packages of podctl.
func TestPurePackages(t *testing.T) {
	packages, pure := readTree(t).packages, map[string]bool{}
	rules := readRules(t)["packages"]
	for _, r := range rules {
		pure[r.name] = slices.Contains(r.marks, "pure")
	}
	for _, r := range rules {
		for path := range packages[r.name].imports {
			dir, own := strings.CutPrefix(path, module)
			if len(r.marks) > 0 && acting.MatchString(path) || pure[r.name] && own && !pure[dir] {
				t.Errorf("%s is %s and imports %s", r.name, r.marks[0], path)
			}
		}
	}
}

// TestLibraries checks that a library is imported exactly where rules.txt lists it.
func TestLibraries(t *testing.T) {
	unused := map[string]bool{}
	rules := readRules(t)["libraries"]
	slices.SortFunc(rules, func(a, b rule) int { return len(b.name) - len(a.name) })
	for _, r := range rules {
		for _, dir := range r.words {
			if !strings.HasPrefix(dir, "!") {
				unused[r.name+": "+dir] = true
			}
		}
	}
	for _, p := range readTree(t).own() {
		for path := range p.imports {
			if domain, _, _ := strings.Cut(path, "/"); !strings.Contains(domain, ".") || strings.HasPrefix(path, module) {
				continue
			}
			i := slices.IndexFunc(rules, func(r rule) bool { return path == r.name || strings.HasPrefix(path, r.name+"/") })
			if i < 0 || !rules[i].allows(p.dir) {
				t.Errorf("rules.txt does not let %s import %s", p.dir, path)
				continue
			}
			delete(unused, rules[i].name+": "+p.dir)
			delete(unused, rules[i].name+": *")
		}
	}
	for u := range unused {
		t.Errorf("rules.txt allows what is not imported: %s", u)
	}
}

// allows reports whether a package may import the library of a rule.
func (r *rule) allows(dir string) bool {
	return slices.Contains(r.words, dir) || slices.Contains(r.words, "*") && !slices.Contains(r.words, "!"+dir)
}

// TestLinked checks that libraries excluded in rules.txt are not linked into a program, because they would be
// initialised at each start.
func TestLinked(t *testing.T) {
	for _, r := range readRules(t)["not linked"] {
		cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "-tags", "grpcnotrace,no_gogo,nethttpomithttp2", "./"+r.name)
		cmd.Dir = root
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		for path := range strings.FieldsSeq(string(out)) {
			for _, bad := range r.words {
				if path == bad || strings.HasPrefix(path, bad+"/") {
					t.Errorf("%s is linked into %s", path, r.name)
				}
			}
		}
		if !strings.Contains(string(out), module+r.name) {
			t.Fatalf("these are not the packages of %s", r.name)
		}
	}
}

// TestMap checks that the map in docs/design.md has exactly the existing packages.
func TestMap(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "docs/design.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, text2, _ := strings.Cut(string(text), "\n## Map of the code\n")
	chart, _, _ := strings.Cut(text2, "\n## ")
	inMap, above := map[string]bool{}, ""
	for line := range strings.Lines(chart) {
		cell, isRow := strings.CutPrefix(line, "| ")
		switch cell, _, _ = strings.Cut(cell, " |"); {
		case strings.HasPrefix(line, "|-"):
			continue
		case !isRow:
			above = ""
			continue
		}
		for name := range strings.SplitSeq(strings.Trim(cell, "`"), "`, `") {
			if above == "" { // The heading of a table names the directory of its packages.
				above = name + "/"
			}
			for _, dir := range spread(name) {
				if _, err := os.Stat(filepath.Join(root, dir)); err != nil {
					dir = above + dir
				}
				inMap[dir] = true
			}
		}
	}
	for dir := range inMap {
		if _, err := os.Stat(filepath.Join(root, dir)); err != nil {
			t.Errorf("the map has %s, which does not exist", dir)
		}
	}
	for _, p := range readTree(t).own() {
		if !inMap[p.dir] {
			t.Errorf("%s is not in the map of docs/design.md", p.dir)
		}
	}
	if len(inMap) < 50 {
		t.Fatalf("the map is not found: %v", slices.Sorted(maps.Keys(inMap)))
	}
}

// spread expands a/{b,c} to a/b and a/c.
func spread(name string) []string {
	before, rest, found := strings.Cut(name, "{")
	if !found {
		return []string{name}
	}
	var all []string
	for part := range strings.SplitSeq(strings.TrimSuffix(rest, "}"), ",") {
		all = append(all, before+part)
	}
	return all
}
