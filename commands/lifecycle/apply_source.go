package lifecycle

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/podspec/input"
	"github.com/podctl/podctl/podspec/load"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/objects"
	"github.com/podctl/podctl/runtime/plan"
)

// sourceChanges say how the source files of pods have changed since podctl stored the pods. What is said of a file depends on whether it
// could be read.
func sourceChanges(ctx context.Context, stored *objects.Store, pods []*podspec.Desired, say func(file, change string, read bool) string) map[model.PodRef]string {
	s := &sources{stored: stored, read: map[sourceKey]*sourceFile{}}
	changes := map[model.PodRef]string{}
	for _, d := range pods {
		// The manifest of a workload's pod is that of the workload.
		if !d.Stored || !isSourceFile(d.Source) || metav1.GetControllerOf(d.Pod) != nil {
			continue
		}
		if text, read := s.change(ctx, d); text != "" {
			changes[model.RefOf(d.Pod)] = say(d.Source, text, read)
		}
	}
	return changes
}

// sources compares pods, as they were applied, with the files that they came from.
type sources struct {
	stored *objects.Store
	// read holds the files that were read, as many pods may come from one.
	read map[sourceKey]*sourceFile
}

// sourceKey is a file, and the namespace of the pods in it that name none.
type sourceKey struct{ path, namespace string }

// sourceFile is what a file holds now, or why that is not known.
type sourceFile struct {
	pods    []*podspec.Desired
	objects []*podspec.Object
	err     error
}

// change says how the source of a pod has changed, and whether it could be read; nothing when it has not changed.
func (s *sources) change(ctx context.Context, d *podspec.Desired) (text string, read bool) {
	file := s.file(ctx, d)
	refused := (*load.RefusedError)(nil)
	switch {
	case errors.Is(file.err, fs.ErrNotExist):
		return "is gone", false
	case errors.As(file.err, &refused):
		return fmt.Sprintf("would be refused now: %s", refused.Problems[0]), true
	case file.err != nil:
		return fmt.Sprintf("cannot be compared: %v", file.err), false
	}
	for _, now := range file.pods {
		if model.RefOf(now.Pod) == model.RefOf(d.Pod) {
			return cmp.Or(changeOf(d, now), s.objectChange(d, file)), true
		}
	}
	return "no longer holds this pod", true
}

// objectChange compares the stored objects that a pod takes with those that its file has now, if they came from it.
func (s *sources) objectChange(d *podspec.Desired, file *sourceFile) string {
	for _, o := range file.objects {
		key := objects.KeyOf(o)
		if !d.Shares(key.Namespace, podspec.ObjectName{Kind: key.Kind, Name: key.Name}) {
			continue
		}
		stored, err := s.stored.Get(key)
		if err != nil || stored.Source != d.Source {
			continue
		}
		if changes, err := s.stored.Changes([]*podspec.Object{o}); err == nil && len(changes[0].Fields) > 0 {
			return fmt.Sprintf("has changed since it was applied (%s of %s)", changes[0].Fields[0], key)
		}
	}
	return ""
}

// changeOf compares a pod with what its file has now. Objects that the file does not bring count as they were.
func changeOf(applied, now *podspec.Desired) string {
	with := &podspec.Desired{Pod: now.Pod, Objects: applied.Objects}
	changes := plan.Edited(applied, with)
	switch {
	case with.SameAs(applied):
		return ""
	case len(changes) == 0:
		return "has changed since it was applied"
	case len(changes) == 1:
		return fmt.Sprintf("has changed since it was applied (%s)", changes[0].Path)
	}
	return fmt.Sprintf("has changed since it was applied (%s and %d more)", changes[0].Path, len(changes)-1)
}

// file reads the source of a pod once. The pod was applied in its namespace, by the manifest
// or by the command line.
func (s *sources) file(ctx context.Context, d *podspec.Desired) *sourceFile {
	key := sourceKey{d.Source, d.Pod.Namespace}
	if file := s.read[key]; file != nil {
		return file
	}
	file := &sourceFile{}
	s.read[key] = file
	m, err := load.Loader{Reader: input.Reader{Namespace: key.namespace}, Workloads: true, Store: true, SkipUnknown: true}.Load(ctx, key.path)
	if file.err = err; err == nil {
		file.pods, file.objects, file.err = m.Pods, m.Apart, m.Err()
	}
	return file
}

// isSourceFile reports whether a source is a file or was one. A pipe that a shell made is not:
// reading it again would block, or read something else.
func isSourceFile(source string) bool {
	if !filepath.IsAbs(source) || strings.HasPrefix(source, "/dev/") || strings.HasPrefix(source, "/proc/") {
		return false
	}
	info, err := os.Stat(source)
	return err != nil || info.Mode().IsRegular()
}
