package load

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/podspec/document"
	"github.com/podctl/podctl/podspec/input"
)

// Complete adds the stored objects that a pod's manifest does not have. The result hidden lists objects of the manifest
// that are also stored; the pod uses those of the manifest.
type Complete func(*podspec.Desired) (with *podspec.Desired, hidden []podspec.ObjectName, err error)

// Loader reads manifests, and adds objects from --configmap and the store to their pods.
type Loader struct {
	input.Reader
	// ConfigMaps lists sources of ConfigMaps and Secrets that are used as if they were in the manifests.
	ConfigMaps []string
	// Stored adds stored objects; nil if there are none.
	Stored Complete
	// Store is set if the caller stores the objects of the manifests. Pods then take them from the store as Shared
	// objects, and all of them are in Objects. Objects from ConfigMaps are not stored.
	Store bool
	// Workloads also accepts workloads.
	Workloads bool
	// SkipUnknown skips objects of unknown kinds instead of refusing them. It requires Workloads.
	SkipUnknown bool
}

// Load reads and parses manifests. The error reports a source that could not be read. Problems with the content are in
// the manifest.
func (l Loader) Load(ctx context.Context, names ...string) (*Manifest, error) {
	sources, err := l.Read(ctx, names...)
	if err != nil {
		return nil, err
	}
	extra, err := l.readExtra(ctx)
	if err != nil {
		return nil, err
	}
	return l.assemble(sources, extra)
}

// Parse is Load for texts that were already read. The error reports that stored objects could not be read.
func (l Loader) Parse(sources ...input.Source) (*Manifest, error) {
	return l.assemble(sources, nil)
}

func (l Loader) assemble(sources, extra []input.Source) (*Manifest, error) {
	a := l.assembly()
	for _, s := range sources {
		a.addSource(s)
	}
	a.extra = true
	for _, s := range extra {
		a.addSource(s)
	}
	m := a.manifest()
	return m, a.failed
}

func (l Loader) assembly() *assembly {
	return &assembly{reading: reading{options: options{loader: l}}}
}

// Text is the content of one source, checked as far as it does not depend on other sources. It is immutable.
type Text struct {
	source  input.Source
	reading reading
}

// Text reads a text by itself.
func (l Loader) Text(s input.Source) *Text { return &Text{source: s, reading: l.assembly().read(s)} }

// Join is like Parse, but takes results of Text, which are not decoded and validated again.
func (l Loader) Join(texts ...*Text) (*Manifest, error) {
	a := l.assembly()
	for _, t := range texts {
		r := t.reading
		r.counted, r.values = a.counted+r.counted, a.values+r.values
		if r.counted > document.MaxDocuments || r.values > document.MaxValues || a.full {
			// The limit is exceeded. Reading it again reports that for one of its documents.
			r = a.read(t.source)
		}
		a.join(t.source.Name, &r)
	}
	m := a.manifest()
	return m, a.failed
}

func (l Loader) readExtra(ctx context.Context) ([]input.Source, error) {
	if len(l.ConfigMaps) == 0 {
		return nil, nil
	}
	return l.Read(ctx, l.ConfigMaps...)
}

// Load reads manifests without stored objects.
func Load(ctx context.Context, from input.Reader, names ...string) (*Manifest, error) {
	return Loader{Reader: from}.Load(ctx, names...)
}

// Parse parses the texts of manifests.
func Parse(sources ...input.Source) *Manifest {
	// Only stored objects can cause an error.
	m, _ := Loader{}.Parse(sources...)
	return m
}

// Manifest is the content of a set of sources.
type Manifest struct {
	Pods []*podspec.Desired
	// Workloads holds the workloads.
	Workloads []*podspec.Workload
	// Objects holds the Services, ConfigMaps, Secrets and claims: all of them if the caller stores them, otherwise only
	// those that no pod of the manifest names.
	Objects  []*podspec.Object
	Problems []document.Problem
	NoEffect []document.Note
	// Skipped lists the objects that podctl does not use.
	Skipped []document.Skipped

	documents []*document.Document
	// missing holds notes about missing pull secrets.
	missing []document.Note
}

// Notes returns the notes to show before a pod is planned or applied: fields without effect and missing pull secrets.
// The plan itself lists the other unresolved references.
func (m *Manifest) Notes() []document.Note { return slices.Concat(m.NoEffect, m.missing) }

// Err returns a *RefusedError if the manifest has something invalid or unsupported, else nil. Unresolved references are
// accepted.
func (m *Manifest) Err() error {
	var refused []document.Problem
	for _, p := range m.Problems {
		if p.Class != document.ClassUnresolved {
			refused = append(refused, p)
		}
	}
	if len(refused) == 0 {
		return nil
	}
	return &RefusedError{Problems: refused}
}

// RefusedError reports that a manifest is refused, with all reasons.
type RefusedError struct {
	Problems []document.Problem
}

// Error lists every problem on its own line.
func (e *RefusedError) Error() string {
	lines := make([]string, 0, len(e.Problems)+1)
	lines = append(lines, fmt.Sprintf("the manifest is refused: %s", document.Counted(len(e.Problems), "problem")))
	for _, p := range e.Problems {
		lines = append(lines, "  "+p.String())
	}
	return strings.Join(lines, "\n")
}
