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

// sourceChanges returns, per pod, how the source file has changed since podctl stored the pod. The function noteFor
// formats the text from the file, the change, and whether the file could be read. A plan only notes the change, because
// `apply --all` applies the stored manifest.
func sourceChanges(
	ctx context.Context, stored *objects.Store, pods []*podspec.Desired,
	noteFor func(file, change string, read bool) string,
) map[model.PodRef]string {
	s := &sources{stored: stored, read: map[sourceKey]*sourceFile{}}
	changes := map[model.PodRef]string{}
	for _, d := range pods {
		// A pod of a workload has no manifest. Its workload has one.
		if !d.Stored || !isSourceFile(d.Source) || metav1.GetControllerOf(d.Pod) != nil {
			continue
		}
		if text, read := s.change(ctx, d); text != "" {
			changes[model.RefOf(d.Pod)] = noteFor(d.Source, text, read)
		}
	}
	return changes
}

// sources compares applied pods with their source files.
type sources struct {
	stored *objects.Store
	// read caches the files, because several pods may come from one file.
	read map[sourceKey]*sourceFile
}

// sourceKey is a file, with the default namespace of the objects in it.
type sourceKey struct{ path, namespace string }

// sourceFile is the current content of a file. err is set if it could not be read or is refused.
type sourceFile struct {
	pods    []*podspec.Desired
	objects []*podspec.Object
	err     error
}

// change describes how the source of a pod has changed, and reports whether it could be read. The text is empty if
// nothing has changed.
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
	return "no longer contains this pod", true
}

// objectChange compares the stored objects that a pod uses with those in its file. It ignores stored objects from other
// files.
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

// changeOf compares a pod with the version in its file. Objects that are not in the file count as unchanged.
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

// file reads the source of a pod, once per file and namespace. The namespace of the pod is the default, because the
// manifest or the command line set it.
func (s *sources) file(ctx context.Context, d *podspec.Desired) *sourceFile {
	key := sourceKey{d.Source, d.Pod.Namespace}
	if file := s.read[key]; file != nil {
		return file
	}
	file := &sourceFile{}
	s.read[key] = file
	loader := load.Loader{
		Reader:      input.Reader{Namespace: key.namespace},
		Workloads:   true,
		Store:       true,
		SkipUnknown: true,
	}
	m, err := loader.Load(ctx, key.path)
	if file.err = err; err == nil {
		file.pods, file.objects, file.err = m.Pods, m.Objects, m.Err()
	}
	return file
}

// isSourceFile reports whether a source is a regular file, or was one. A pipe of a shell is excluded, because a second
// read would block or return other data.
func isSourceFile(source string) bool {
	if !filepath.IsAbs(source) || strings.HasPrefix(source, "/dev/") || strings.HasPrefix(source, "/proc/") {
		return false
	}
	info, err := os.Stat(source)
	return err != nil || info.Mode().IsRegular()
}
