//go:build kustomize

package kustomize

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	yamlv3 "go.yaml.in/yaml/v3"
	"sigs.k8s.io/kustomize/api/konfig"
	"sigs.k8s.io/kustomize/api/types"

	"github.com/podctl/podctl/podspec/document"
	"github.com/podctl/podctl/podspec/input"
)

// maxKustomizations bounds how many kustomizations one leads to.
const maxKustomizations = 100

// checker reads a kustomization and those that it is based on, and finds all that podctl does not do.
type checker struct {
	files    *files
	visited  map[string]bool
	problems []document.Problem
}

// kustomization checks that of a directory.
func (c *checker) kustomization(dir string) {
	if c.visited[dir] || len(c.visited) > maxKustomizations {
		return
	}
	if c.visited[dir] = true; len(c.visited) > maxKustomizations {
		c.add(dir, fmt.Sprintf("leads to more than %d kustomizations", maxKustomizations))
		return
	}
	for _, name := range konfig.RecognizedKustomizationFileNames() {
		path := filepath.Join(dir, name)
		text, err := c.files.read(path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			c.add(path, err.Error())
		default:
			c.check(dir, path, text)
		}
	}
}

func (c *checker) add(path, detail string) {
	c.problems = append(c.problems, document.Problem{Class: document.ClassInvalid, File: path, Detail: detail})
}

// check checks the text of a kustomization, as the library reads it.
func (c *checker) check(dir, path string, text []byte) {
	var k types.Kustomization
	if k.Unmarshal(text) != nil {
		// What is in it may be a Secret.
		c.add(path, "is no kustomization: it is no YAML, or has a field or a value that there cannot be")
		return
	}
	c.files.checked[path] = true
	k.FixKustomization()
	f := &findings{path: path, found: map[string]bool{}}
	_ = yamlv3.NewDecoder(bytes.NewReader(text)).Decode(&f.root) // only places are looked for in it
	f.programs(&k)
	for field, refs := range references(&k) {
		for _, ref := range refs {
			f.reference(field, ref)
		}
	}
	f.literals(&k)
	f.inline(&k)
	slices.SortFunc(f.problems, func(a, b document.Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column), cmp.Compare(a.Detail, b.Detail))
	})
	c.problems = append(c.problems, f.problems...)
	if len(f.problems) > 0 {
		return
	}
	for _, ref := range append(k.Resources, k.Components...) {
		if base := filepath.Join(dir, ref); c.files.IsDir(base) {
			c.kustomization(base)
		}
	}
}

// references are the paths that a kustomization has, by the fields that they are in. All that the library loads is among
// them, as generators and transformers are refused.
func references(k *types.Kustomization) map[string][]string {
	refs := map[string][]string{
		"resources": k.Resources, "components": k.Components, "crds": k.Crds, "configurations": k.Configurations,
	}
	if path, given := k.OpenAPI["path"]; given {
		refs["openapi"] = []string{path}
	}
	for field, patches := range patchesOf(k) {
		for _, p := range patches {
			refs[field] = append(refs[field], p.Path)
		}
	}
	for _, r := range k.Replacements {
		refs["replacements"] = append(refs["replacements"], r.Path)
	}
	for _, g := range k.ConfigMapGenerator {
		refs["configMapGenerator"] = append(refs["configMapGenerator"], generatorPaths(&g.KvPairSources)...)
	}
	for _, g := range k.SecretGenerator {
		refs["secretGenerator"] = append(refs["secretGenerator"], generatorPaths(&g.KvPairSources)...)
	}
	return refs
}

// patchesOf are the patches of a kustomization by the field that they are in. A strategic merge patch of one line is its
// path.
func patchesOf(k *types.Kustomization) map[string][]types.Patch {
	patches := map[string][]types.Patch{"patches": k.Patches, "patchesJson6902": k.PatchesJson6902} //nolint:staticcheck // the library reads it
	for _, text := range k.PatchesStrategicMerge {                                                  //nolint:staticcheck // the library reads it
		p := types.Patch{Patch: string(text)}
		if !strings.Contains(p.Patch, "\n") {
			p = types.Patch{Path: p.Patch}
		}
		patches["patchesStrategicMerge"] = append(patches["patchesStrategicMerge"], p)
	}
	return patches
}

// generatorPaths are the files of a generator; one can have its key in front.
func generatorPaths(s *types.KvPairSources) []string {
	paths := append([]string{s.EnvSource}, s.EnvSources...)
	for _, file := range s.FileSources {
		_, path, named := strings.Cut(file, "=")
		if !named {
			path = file
		}
		paths = append(paths, path)
	}
	return paths
}

// findings are the problems of one kustomization.
type findings struct {
	path     string
	root     yamlv3.Node
	problems []document.Problem
	found    map[string]bool
}

// refuse adds a problem at the place of a text in the kustomization, or of a field.
func (f *findings) refuse(field, text, detail string) {
	if f.found[field+"\x00"+text+detail] {
		return
	}
	f.found[field+"\x00"+text+detail] = true
	line, column := placeOf(&f.root, field, text)
	f.problems = append(f.problems, document.Problem{Class: document.ClassUnsupported, File: f.path, Line: line, Column: column, Path: field, Detail: detail})
}

// placeOf is where a text is below a field; where the field is, if it is not there.
func placeOf(root *yamlv3.Node, field, text string) (line, column int) {
	for _, mapping := range root.Content {
		for i := 0; i+1 < len(mapping.Content); i += 2 {
			key := mapping.Content[i]
			if !strings.EqualFold(key.Value, field) {
				continue
			}
			if n := scalar(mapping.Content[i+1], text, 0); text != "" && n != nil {
				return n.Line, n.Column
			}
			return key.Line, key.Column
		}
	}
	return 0, 0
}

// scalar finds a text in a tree. Aliases are not followed.
func scalar(n *yamlv3.Node, text string, depth int) *yamlv3.Node {
	const deepest = 100
	if depth > deepest {
		return nil
	}
	if n.Kind == yamlv3.ScalarNode && strings.HasSuffix(n.Value, text) {
		return n
	}
	for _, child := range n.Content {
		if found := scalar(child, text, depth+1); found != nil {
			return found
		}
	}
	return nil
}

// programs refuses what is made by programs.
func (f *findings) programs(k *types.Kustomization) {
	for field, given := range map[string]bool{
		"generators": len(k.Generators) > 0, "transformers": len(k.Transformers) > 0, "validators": len(k.Validators) > 0,
	} {
		if given {
			f.refuse(field, "", "podctl runs no generators, transformers and validators of a kustomization: build it with kustomize, and apply what it prints")
		}
	}
	for field, given := range map[string]bool{
		"helmCharts": len(k.HelmCharts) > 0, "helmGlobals": k.HelmGlobals != nil, "helmChartInflationGenerator": len(k.HelmChartInflationGenerator) > 0,
	} {
		if given {
			f.refuse(field, "", "podctl does not run helm: write helm template ... > FILE and name the file in resources")
		}
	}
}

// reference refuses what is on another machine, before the library could fetch it.
func (f *findings) reference(field, ref string) {
	if isRemote(ref) {
		f.refuse(field, ref, fmt.Sprintf("%s is on another machine: podctl fetches nothing for a kustomization; get it first, and name the directory or the file here", input.Quote(withoutPassword(ref))))
	}
}

// literals refuses those of a generator without a key: the library would repeat them in its message.
func (f *findings) literals(k *types.Kustomization) {
	for _, g := range k.SecretGenerator {
		for _, text := range g.LiteralSources {
			if name, _, given := strings.Cut(text, "="); !given || name == "" {
				f.refuse("secretGenerator", "", "has a literal that is not KEY=VALUE")
			}
		}
	}
}

// inline refuses patches whose aliases stand for too much.
func (f *findings) inline(k *types.Kustomization) {
	for field, patches := range patchesOf(k) {
		for _, p := range patches {
			if err := checkExtent([]byte(p.Patch)); err != nil {
				f.refuse(field, "", err.Error())
			}
		}
	}
}

// isRemote reports whether the library would take a path for an address: of a file that it gets by HTTP, or of a repository
// that it clones. It is stricter than the library, which takes some addresses for paths.
func isRemote(ref string) bool {
	if u, err := url.Parse(ref); err == nil && u.Scheme != "" {
		return true
	}
	lower := strings.ToLower(ref)
	for _, prefix := range []string{"git::", "github.com/", "github.com:"} {
		if strings.HasPrefix(lower, prefix) {
			return true
		}
	}
	return strings.Contains(ref, "://") || regexp.MustCompile(`^[a-zA-Z][a-zA-Z0-9-]*@`).MatchString(ref)
}

// withoutPassword is an address that may be printed.
func withoutPassword(ref string) string {
	if u, err := url.Parse(ref); err == nil && u.User != nil {
		return u.Redacted()
	}
	if _, rest, found := strings.Cut(ref, "@"); found && strings.Contains(ref, "://") {
		return "...@" + rest
	}
	return ref
}
