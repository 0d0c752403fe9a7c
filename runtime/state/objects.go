package state

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/filelock"
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
	if err = statedir.FirstError(err, s.layout.dir().Check()); err != nil {
		return nil, err
	}
	text, err := s.layout.dir().ReadPrivate(path, objectMax)
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
	if err := s.layout.dir().Check(); err != nil {
		return nil, err
	}
	root, err := s.layout.dir().OpenDir(s.dir())
	if err != nil {
		return nil, listingObjects(safefs.IgnoreMissing(err))
	}
	defer root.Close() //nolint:errcheck // A handle on a directory.
	namespaces, err := statedir.Subdirs(root)
	if err != nil {
		return nil, listingObjects(err)
	}
	var keys []ObjectKey
	for _, namespace := range namespaces {
		for kind, dir := range s.dirs {
			names, err := filesIn(root, namespace, dir)
			if err != nil {
				return nil, listingObjects(err)
			}
			for _, name := range names {
				keys = append(keys, ObjectKey{Namespace: namespace, Kind: kind, Name: name})
			}
		}
	}
	keys = slices.DeleteFunc(keys, func(k ObjectKey) bool { return k.check() != nil })
	slices.SortFunc(keys, ObjectKey.Compare)
	return keys, nil
}

func listingObjects(err error) error {
	if err != nil {
		return fmt.Errorf("listing stored objects: %w", err)
	}
	return nil
}

// filesIn are the names of the ordinary files in a directory that may be missing.
func filesIn(root *safefs.Dir, names ...string) ([]string, error) {
	dir, err := root.Sub(names...)
	if safefs.Missing(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	entries, err := dir.Entries()
	var found []string
	for _, entry := range entries {
		if entry.Type().IsRegular() {
			found = append(found, entry.Name())
		}
	}
	return found, errors.Join(err, dir.Close())
}

// ChangedAt is when an object was written or removed last; zero if there never was one. It looks at
// directories only: an object that is written takes the place of a file.
func (s Objects) ChangedAt() time.Time {
	dir, err := s.layout.dir().OpenDir(s.dir())
	if err != nil {
		return time.Time{}
	}
	defer dir.Close() //nolint:errcheck // A handle on a directory.
	return changedAt(dir, 2)
}

// changedAt is when a directory, or one of so many levels below it, was changed last.
func changedAt(dir *safefs.Dir, levels int) (last time.Time) {
	if info, err := dir.Stat(); err == nil {
		last = info.ModTime()
	}
	if levels == 0 {
		return last
	}
	names, _ := statedir.Subdirs(dir) // What cannot be read has not changed as far as is known.
	for _, name := range names {
		sub, err := dir.Open(name)
		if err != nil {
			continue
		}
		if at := changedAt(sub, levels-1); at.After(last) {
			last = at
		}
		_ = sub.Close()
	}
	return last
}

// Write replaces the file of an object as a whole: after a crash the old one or the new one is
// there. The caller holds the lock.
func (s Objects) Write(key ObjectKey, text []byte) error {
	path, err := s.Path(key)
	if err = statedir.FirstError(err, s.layout.Prepare()); err == nil {
		err = s.layout.dir().Replace(s.unfinished(), path, text)
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
	if err = statedir.FirstError(err, s.layout.dir().Check()); err == nil {
		err = s.layout.dir().RemoveFile(path)
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

// LockObjects takes the stored objects for this process alone, to change
// them. Whoever only reads one needs no lock.
func (l *Locker) LockObjects(ctx context.Context) (*filelock.Lock, error) {
	ctx, cancel := l.timeout(ctx)
	defer cancel()
	return l.Layout.Locks().takeOwn(ctx, lockObjects, "the store of ConfigMaps, Secrets, claims and Services")
}

// LockWorkloads takes the objects that stand for pods for this process alone, to change them.
func (l *Locker) LockWorkloads(ctx context.Context) (*filelock.Lock, error) {
	ctx, cancel := l.timeout(ctx)
	defer cancel()
	return l.Layout.Locks().takeOwn(ctx, lockWorkloads, "the store of workloads")
}
