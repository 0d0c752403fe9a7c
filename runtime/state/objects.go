package state

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/safefs"
	"github.com/podctl/podctl/runtime/state/statedir"
)

// ObjectKey names a stored object: a ConfigMap, a Secret, a claim, a Service or a workload.
type ObjectKey struct{ Namespace, Kind, Name string }

// check is a *NameError for an object that cannot be kept.
func (k ObjectKey) check() error {
	if known := podspec.KindNamed(k.Kind); known.Name == "" || known.Name == podspec.KindPod {
		return &NameError{Kind: "kind", Name: k.Kind}
	}
	return statedir.FirstError(statedir.CheckName(statedir.KindNamespace, k.Namespace), statedir.CheckName(statedir.KindObject, k.Name))
}

// Word is the kind of the object as users write it: configmap.
func (k ObjectKey) Word() string { return strings.ToLower(k.Kind) }

// String is the object as users write it: configmap default/web.
func (k ObjectKey) String() string { return k.Word() + " " + k.Namespace + "/" + k.Name }

// Compare orders objects by namespace, kind and name.
func (k ObjectKey) Compare(other ObjectKey) int {
	return slices.Compare([]string{k.Namespace, k.Kind, k.Name}, []string{other.Namespace, other.Kind, other.Name})
}

// kindDirs are the directories of the kinds that are such, but pods.
func kindDirs(such func(podspec.Kind) bool) map[string]string {
	dirs := map[string]string{}
	for _, kind := range podspec.Kinds() {
		if such(kind) && kind.Name != podspec.KindPod {
			dirs[kind.Name] = kind.Dir()
		}
	}
	return dirs
}

const (
	// objectMax bounds what is read of an object, in bytes. The values of one have at most
	// 1 MiB, of which each byte takes at most six in JSON.
	objectMax = 8 << 20
	// ObjectsMax bounds how many objects are kept.
	ObjectsMax = 1000
)

// Objects is the place of stored objects, one file each.
type Objects struct {
	layout Layout
	name   string
	// dirs are the directories of the kinds that are kept there.
	dirs map[string]string
}

func (s Objects) dir(names ...string) string {
	return filepath.Join(append([]string{s.layout.Root, s.name}, names...)...)
}

// Path is the file of an object. The error is a *NameError.
func (s Objects) Path(key ObjectKey) (string, error) {
	if err := key.check(); err != nil {
		return "", err
	}
	dir, kept := s.dirs[key.Kind]
	if !kept {
		return "", &NameError{Kind: "kind", Name: key.Kind}
	}
	return s.dir(key.Namespace, dir, key.Name), nil
}

// Read reads the file of an object; nil if there is none.
func (s Objects) Read(key ObjectKey) ([]byte, error) {
	path, err := s.Path(key)
	if err != nil {
		return nil, err
	}
	text, err := s.layout.dir().Read(path, objectMax, safefs.CheckPrivate)
	if safefs.Missing(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the stored %s (%s): %w", key, path, safefs.Cause(err))
	}
	return text, nil
}

// List lists the objects, in order. What lies there under names that no object has is not
// podctl's.
func (s Objects) List() ([]ObjectKey, error) {
	kinds := map[string]string{}
	for kind, dir := range s.dirs {
		kinds[dir] = kind
	}
	var keys []ObjectKey
	err := s.layout.dir().Walk(s.dir(), func(names []string, entry fs.DirEntry) error {
		switch {
		case len(names) == 3 && entry.IsDir():
			return fs.SkipDir
		case len(names) == 3 && entry.Type().IsRegular():
			keys = append(keys, ObjectKey{Namespace: names[0], Kind: kinds[names[1]], Name: names[2]})
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("listing stored objects: %w", err)
	}
	keys = slices.DeleteFunc(keys, func(k ObjectKey) bool { return k.check() != nil })
	slices.SortFunc(keys, ObjectKey.Compare)
	return keys, nil
}

// ChangedAt is when an object was written or removed last; zero if there never was one. It looks at
// directories only: an object that is written takes the place of a file.
func (s Objects) ChangedAt() (last time.Time) {
	// What cannot be read has not changed as far as is known.
	_ = s.layout.dir().Walk(s.dir(), func(names []string, entry fs.DirEntry) error {
		if !entry.IsDir() {
			return nil
		}
		if info, err := entry.Info(); err == nil && info.ModTime().After(last) {
			last = info.ModTime()
		}
		if len(names) == 2 {
			return fs.SkipDir
		}
		return nil
	})
	return last
}

// Write replaces the file of an object as a whole: after a crash the old one or the new one is
// there. The caller holds the lock.
func (s Objects) Write(key ObjectKey, text []byte) error {
	path, err := s.Path(key)
	if err == nil {
		err = s.layout.dir().Replace(s.unfinished(), path, text, 0o600, statedir.Durable)
	}
	if err != nil {
		return fmt.Errorf("storing %s: %w", key, safefs.Cause(err))
	}
	return nil
}

// unfinished is the file of the object that is being written. It is one for all of them, so that whoever takes the lock knows what a
// killed process left.
func (s Objects) unfinished() string { return s.dir(".unfinished") }

// Remove removes the file of an object, and the directories that are empty then. One that is
// gone is no error. The caller holds the lock.
func (s Objects) Remove(key ObjectKey) error {
	path, err := s.Path(key)
	if err == nil {
		err = s.layout.dir().Remove(path)
	}
	for range 2 {
		if path = filepath.Dir(path); err == nil {
			err = s.layout.dir().RemoveIfEmpty(path)
		}
	}
	if err != nil {
		return fmt.Errorf("removing the stored %s: %w", key, safefs.Cause(err))
	}
	return nil
}
