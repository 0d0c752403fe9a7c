//go:build kustomize

package kustomize

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/resmap"

	"github.com/podctl/podctl/podspec/input"
)

// Build builds the kustomization of a directory. Each object is a source of its own, whose name says what it is of: its
// lines are in no file. Faults of kustomizations are a *RefusedError.
func Build(dir string) ([]input.Source, error) {
	sources, err := build(dir)
	if refused := (*RefusedError)(nil); err != nil && !errors.As(err, &refused) {
		err = fmt.Errorf("building the kustomization %s: %w", input.OneLine(dir), err)
	}
	return sources, err
}

func build(dir string) ([]input.Source, error) {
	root, err := rootOf(dir)
	if err != nil {
		return nil, err
	}
	files := newFiles(root)
	c := &checker{files: files, visited: map[string]bool{}}
	c.kustomization(root)
	if len(c.problems) > 0 {
		return nil, &RefusedError{Problems: c.problems}
	}
	made, err := run(files, root)
	if files.failure != nil {
		// The library takes a file that cannot be read for one that is not there.
		return nil, files.failure
	}
	if err != nil {
		return nil, files.tell(err)
	}
	return texts(root, made)
}

// rootOf is the directory itself: the library would take a name for an address.
func rootOf(dir string) (string, error) {
	if input.IsURL(dir) || dir == "-" {
		return "", errors.New("it must be a directory of this machine")
	}
	path, err := filepath.Abs(dir)
	if err == nil {
		path, err = filepath.EvalSymlinks(path)
	}
	if err != nil {
		return "", err
	}
	info, err := os.Stat(path)
	if err == nil && !info.IsDir() {
		err = errors.New("it is no directory")
	}
	return path, err
}

// run calls the library. A hostile kustomization must not end the process.
func run(files *files, root string) (made resmap.ResMap, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = errors.New("the library of kustomize failed")
		}
	}()
	// The options are those of kustomize build: files of a root stay below it, and there are no plugins.
	return krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(files, root)
}

// texts are the objects that were made. All of them together are bounded as one manifest is.
func texts(root string, made resmap.ResMap) ([]input.Source, error) {
	var sources []input.Source
	total := 0
	for _, r := range made.Resources() {
		text, err := r.AsYAML()
		if err != nil {
			return nil, errors.New("an object of it cannot be written")
		}
		if total += len(text); total > input.DefaultMaxBytes {
			return nil, fmt.Errorf("what it comes to is larger than %d bytes", input.DefaultMaxBytes)
		}
		name := strings.Trim(r.GetNamespace()+"/"+r.GetName(), "/")
		sources = append(sources, input.Source{Name: fmt.Sprintf("kustomization %s: %s %s", root, cmp.Or(r.GetKind(), "object"), name), Text: text, Made: true})
	}
	if len(sources) == 0 {
		return nil, errors.New("it comes to no object")
	}
	return sources, nil
}
