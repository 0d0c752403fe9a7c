package agent

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fsnotify/fsnotify"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/plan"
)

// maxWatches limits the number of pods whose missing hostPaths are watched, because the kernel gives a user few inotify
// instances. Other held pods are only checked periodically.
const maxWatches = 32

// pathWatch wakes a held pod when a missing hostPath appears. It watches the nearest existing parent of each path.
// While no pod misses a path, it watches nothing.
type pathWatch struct {
	// wake is called from other goroutines than the loop.
	wake func(ctx context.Context, uid types.UID)
	// missing are the missing paths of each watched pod. watchers are their watchers.
	missing  map[types.UID][]string
	watchers map[types.UID]*fsnotify.Watcher
}

// missingPaths returns the hostPaths of a held pod that do not exist.
func missingPaths(d *podspec.Desired, made *plan.Plan) []string {
	if made == nil || made.Recheck == 0 {
		return nil
	}
	var paths []string
	for _, vol := range podspec.MountedVolumes(d) {
		if vol.HostPath == nil {
			continue
		}
		if _, err := os.Stat(vol.HostPath.Path); os.IsNotExist(err) {
			paths = append(paths, filepath.Clean(vol.HostPath.Path))
		}
	}
	return paths
}

// watch sets the missing paths of a pod. They are empty for a pod that misses none or is gone. If paths cannot be
// watched, the next check of the pod finds them.
func (w *pathWatch) watch(ctx context.Context, uid types.UID, paths []string) {
	if slices.Equal(w.missing[uid], paths) {
		return
	}
	w.forget(uid)
	if len(paths) == 0 || len(w.watchers) >= maxWatches {
		return
	}
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return
	}
	w.missing[uid], w.watchers[uid] = paths, watcher
	watchNearest(watcher, paths)
	go func() {
		defer watcher.Close() //nolint:errcheck // no data is lost
		for waitForPath(ctx, watcher, paths) {
			watchNearest(watcher, paths)
			w.wake(ctx, uid)
		}
	}()
}

// forget stops watching the paths of a pod.
func (w *pathWatch) forget(uid types.UID) {
	if watcher := w.watchers[uid]; watcher != nil {
		_ = watcher.Close() // This ends the goroutine.
		delete(w.watchers, uid)
		delete(w.missing, uid)
	}
}

// watchNearest makes the watcher watch only the nearest existing parents of paths.
func watchNearest(watcher *fsnotify.Watcher, paths []string) {
	before := watcher.WatchList()
	for _, path := range paths {
		dir := nearestDir(path)
		_ = watcher.Add(dir)
		before = slices.DeleteFunc(before, func(old string) bool { return old == dir })
	}
	for _, dir := range before {
		_ = watcher.Remove(dir)
	}
}

// nearestDir returns the nearest parent of a path that is a directory.
func nearestDir(path string) string {
	for dir := filepath.Dir(path); ; dir = filepath.Dir(dir) {
		if info, err := os.Stat(dir); dir == "/" || err == nil && info.Mode().Type() == fs.ModeDir {
			return dir
		}
	}
}

// waitForPath waits until one of the paths, or a directory above one, appears. It returns false at the end of the
// context or of the watcher.
func waitForPath(ctx context.Context, watcher *fsnotify.Watcher, paths []string) bool {
	for {
		select {
		case <-ctx.Done():
			return false
		case event, open := <-watcher.Events:
			name := filepath.Clean(event.Name)
			below := func(path string) bool { return path == name || strings.HasPrefix(path, name+"/") }
			if !open || event.Has(fsnotify.Create) && slices.ContainsFunc(paths, below) {
				return open
			}
		case _, open := <-watcher.Errors:
			if !open {
				return false
			}
		}
	}
}
