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

// check returns a *NameError for an object that cannot be stored.
func (k ObjectKey) check() error {
	if known := podspec.KindNamed(k.Kind); known.Name == "" || known.Name == podspec.KindPod {
		return &NameError{Kind: "kind", Name: k.Kind}
	}
	return statedir.FirstError(
		statedir.CheckName(statedir.KindNamespace, k.Namespace),
		statedir.CheckName(statedir.KindObject, k.Name),
	)
}

// Word returns the kind as users write it: configmap.
func (k ObjectKey) Word() string { return strings.ToLower(k.Kind) }

// String returns the object as users write it: configmap default/web.
func (k ObjectKey) String() string { return k.Word() + " " + k.Namespace + "/" + k.Name }

// Compare orders objects by namespace, kind and name.
func (k ObjectKey) Compare(other ObjectKey) int {
	return slices.Compare([]string{k.Namespace, k.Kind, k.Name}, []string{other.Namespace, other.Kind, other.Name})
}

// kindDirs returns the directories of the selected kinds, except pods.
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
	// objectMax limits the bytes read from an object. Its values have at most 1 MiB, and each byte takes at most six in
	// JSON.
	objectMax = 8 << 20
	// ObjectsMax limits the number of stored objects.
	ObjectsMax = 1000
)

// Objects is a store of objects, one file each.
type Objects struct {
	layout Layout
	name   string
	// dirs maps the kinds of this store to their directories.
	dirs map[string]string
}

// ClusterObjects returns the copies of ConfigMaps, Secrets and bound claims of the API server.
func ClusterObjects(l Layout) Objects {
	return Objects{l, filepath.Join("cluster", "objects"), kindDirs(func(k podspec.Kind) bool {
		return k.Name == podspec.KindConfigMap || k.Name == podspec.KindSecret || k.Name == podspec.KindClaim
	})}
}

func (s Objects) dir(names ...string) string {
	return filepath.Join(append([]string{s.layout.Root, s.name}, names...)...)
}

// Path returns the file of an object. The error is a *NameError.
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

// Read reads the file of an object. It returns nil if there is none.
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

// List returns the objects in order. It ignores files with other names, which do not belong to podctl.
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
	slices.SortStableFunc(keys, ObjectKey.Compare)
	return keys, nil
}

// ChangedAt returns when an object was last written or removed, or zero if that never happened. It checks only
// directories, because writing an object replaces its file and so changes the directory.
func (s Objects) ChangedAt() (last time.Time) {
	// Directories that cannot be read count as unchanged.
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

// Write replaces the file of an object as a whole: after a crash either the old or the new one exists. The caller holds
// the lock.
func (s Objects) Write(key ObjectKey, text []byte) error {
	path, err := s.Path(key)
	if err == nil {
		err = s.layout.dir().Replace(s.unfinished(), path, text, 0o600, statedir.Durable)
	}
	return safefs.Wrapf(safefs.Cause(err), "storing %s", key)
}

// unfinished is the temporary file for writing. All objects share it, so that the next holder of the lock finds the
// leftovers of a killed process.
func (s Objects) unfinished() string { return s.dir(".unfinished") }

// RemoveUnfinished removes what a killed process was writing. The caller holds the lock.
func (s Objects) RemoveUnfinished() error { return s.layout.dir().Remove(s.unfinished()) }

// Remove removes the file of an object, and its directories if they are empty. A missing file is not an error. The
// caller holds the lock.
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
	return safefs.Wrapf(safefs.Cause(err), "removing the stored %s", key)
}
