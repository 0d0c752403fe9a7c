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

// Complete gives a pod the stored objects that its manifest lacks. It returns which of those
// that the manifest brings are stored as well: the manifest's count.
type Complete func(*podspec.Desired) (with *podspec.Desired, hidden []podspec.ObjectName, err error)

// Loader reads manifests, with what pods take from elsewhere.
type Loader struct {
	input.Reader
	// ConfigMaps are sources of ConfigMaps and Secrets that count as if the manifests had them.
	ConfigMaps []string
	// Stored has the stored objects; nil if there are none.
	Stored Complete
	// Store is set where the caller stores the objects of the manifests: pods then take them from the store, as Shared objects,
	// and all of them are in Apart. Those of ConfigMaps stay the manifests' own.
	Store bool
	// Workloads takes objects that stand for pods too.
	Workloads bool
	// SkipUnknown skips objects of kinds that podctl does not know, which are refused otherwise. Only with Workloads.
	SkipUnknown bool
}

// Load reads manifests and everything in them. The error says that a source could not be
// read; what is wrong with its content is among the manifest's problems.
func (l Loader) Load(ctx context.Context, names ...string) (*Manifest, error) {
	sources, err := l.Read(ctx, names...)
	if err != nil {
		return nil, err
	}
	beside, err := l.readBeside(ctx)
	if err != nil {
		return nil, err
	}
	return l.assemble(sources, beside)
}

// Parse is Load for texts that have been read. The error says that what is stored could not be.
func (l Loader) Parse(sources ...input.Source) (*Manifest, error) {
	return l.assemble(sources, nil)
}

func (l Loader) assemble(sources, beside []input.Source) (*Manifest, error) {
	a := l.assembly()
	for _, s := range sources {
		a.addSource(s)
	}
	a.beside = true
	for _, s := range beside {
		a.addSource(s)
	}
	m := a.manifest()
	return m, a.failed
}

func (l Loader) assembly() *assembly {
	return &assembly{reading: reading{options: options{loader: l}}}
}

// Text is a text that has been read, with everything that does not depend on other texts. It is not changed any more.
type Text struct {
	source  input.Source
	reading reading
}

// Text reads a text by itself.
func (l Loader) Text(s input.Source) *Text { return &Text{source: s, reading: l.assembly().read(s)} }

// Join is Parse for texts that have been read by themselves. It validates only what depends on several of them.
func (l Loader) Join(texts ...*Text) (*Manifest, error) {
	a := l.assembly()
	for _, t := range texts {
		r := t.reading
		r.counted, r.values = a.counted+r.counted, a.values+r.values
		if r.counted > document.MaxDocuments || r.values > document.MaxValues || a.full {
			// It is too much, and one of its documents is blamed for that.
			r = a.read(t.source)
		}
		a.join(t.source.Name, &r)
	}
	m := a.manifest()
	return m, a.failed
}

func (l Loader) readBeside(ctx context.Context) ([]input.Source, error) {
	if len(l.ConfigMaps) == 0 {
		return nil, nil
	}
	return l.Read(ctx, l.ConfigMaps...)
}

// Load reads manifests with nothing from elsewhere.
func Load(ctx context.Context, from input.Reader, names ...string) (*Manifest, error) {
	return Loader{Reader: from}.Load(ctx, names...)
}

// Parse makes pods of the texts of manifests.
func Parse(sources ...input.Source) *Manifest {
	// Only what is stored can fail.
	m, _ := Loader{}.Parse(sources...)
	return m
}

// Manifest is what a set of sources says.
type Manifest struct {
	Pods []*podspec.Desired
	// Workloads are the objects that stand for pods.
	Workloads []*podspec.Workload
	// Apart are the Services, and the ConfigMaps, Secrets and claims: all of them if the caller stores them, and else those that no pod
	// of the manifest names.
	Apart    []*podspec.Object
	Problems []document.Problem
	NoEffect []document.Note
	// Skipped are the objects that podctl has no use for.
	Skipped []document.Skipped

	documents []*document.Document
	// missing are the pull secrets that no document gives.
	missing []document.Note
}

// Notes are what is to be said before a pod is planned or applied: what has no effect, and the
// pull secrets that are missing. The plan itself holds what else is unresolved.
func (m *Manifest) Notes() []document.Note { return slices.Concat(m.NoEffect, m.missing) }

// Err is a *RefusedError when the manifest holds something invalid or
// unsupported, else nil. What is unresolved refuses nothing.
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

// RefusedError says that a manifest is not accepted, with all the reasons at
// once.
type RefusedError struct {
	Problems []document.Problem
}

// Error lists every problem on a line of its own.
func (e *RefusedError) Error() string {
	lines := make([]string, 0, len(e.Problems)+1)
	lines = append(lines, fmt.Sprintf("the manifest is refused: %s", document.Counted(len(e.Problems), "problem")))
	for _, p := range e.Problems {
		lines = append(lines, "  "+p.String())
	}
	return strings.Join(lines, "\n")
}
