package agent

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/fsnotify/fsnotify"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/plan"
)

// maxWatchedDirs bounds the directories that are watched for missing hostPaths. The pods of others are looked
// at again as all that are held.
const maxWatchedDirs = 128

// pathWatch wakes pods that are held when a hostPath appears that they miss. It watches the nearest parent of
// each path that exists. While no pod misses a path, it watches nothing.
type pathWatch struct {
	// wake is called beside the loop.
	wake func(ctx context.Context, uid types.UID)

	mu      sync.Mutex
	missing map[types.UID][]string
	watcher *fsnotify.Watcher
	dirs    map[string]bool
}

// missingPaths are the hostPaths of a held pod that do not exist.
func missingPaths(d *podspec.Desired, made *plan.Plan) []string {
	if made == nil || made.Recheck == 0 {
		return nil
	}
	var paths []string
	for _, one := range podspec.UsedVolumes(d.Pod) {
		vol := d.Volume(one)
		if vol.HostPath == nil {
			continue
		}
		if _, err := os.Stat(vol.HostPath.Path); os.IsNotExist(err) {
			paths = append(paths, filepath.Clean(vol.HostPath.Path))
		}
	}
	return paths
}

// follow takes what a pod misses now; nothing for one that misses nothing, or is gone.
func (w *pathWatch) follow(ctx context.Context, uid types.UID, paths []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if slices.Equal(w.missing[uid], paths) {
		return
	}
	if w.missing == nil {
		w.missing, w.dirs = map[types.UID][]string{}, map[string]bool{}
	}
	if delete(w.missing, uid); len(paths) > 0 {
		w.missing[uid] = paths
	}
	w.renew(ctx)
}

// forget takes that a pod misses nothing any more.
func (w *pathWatch) forget(uid types.UID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, missed := w.missing[uid]; missed {
		delete(w.missing, uid)
		w.drop(w.wanted())
	}
}

// renew watches the directories that matter now. What cannot be watched is found by the next look at the pod.
func (w *pathWatch) renew(ctx context.Context) {
	wanted := w.wanted()
	if w.watcher == nil && len(wanted) > 0 {
		watcher, err := fsnotify.NewWatcher()
		if err != nil {
			return
		}
		w.watcher = watcher
		go w.run(ctx, watcher)
	}
	w.drop(wanted)
	for dir := range wanted {
		if !w.dirs[dir] && w.watcher.Add(dir) == nil {
			w.dirs[dir] = true
		}
	}
}

// wanted are the directories that matter now.
func (w *pathWatch) wanted() map[string]bool {
	wanted := map[string]bool{}
	for _, paths := range w.missing {
		for _, path := range paths {
			if dir := nearestDir(path); len(wanted) < maxWatchedDirs {
				wanted[dir] = true
			}
		}
	}
	return wanted
}

// drop ends the watches of other directories.
func (w *pathWatch) drop(wanted map[string]bool) {
	for dir := range w.dirs {
		if !wanted[dir] {
			_ = w.watcher.Remove(dir)
			delete(w.dirs, dir)
		}
	}
}

// nearestDir is the nearest parent of a path that is a directory.
func nearestDir(path string) string {
	for dir := filepath.Dir(path); ; dir = filepath.Dir(dir) {
		if info, err := os.Stat(dir); dir == "/" || err == nil && info.Mode().Type() == fs.ModeDir {
			return dir
		}
	}
}

// run passes on what appears, until the context ends.
func (w *pathWatch) run(ctx context.Context, watcher *fsnotify.Watcher) {
	defer watcher.Close() //nolint:errcheck // nothing is lost
	for {
		select {
		case <-ctx.Done():
			return
		case event, open := <-watcher.Events:
			if !open {
				return
			}
			if event.Has(fsnotify.Create) {
				w.appeared(ctx, filepath.Clean(event.Name))
			}
		case _, open := <-watcher.Errors:
			if !open {
				return
			}
		}
	}
}

// appeared wakes the pods that miss a path, or something below it, which may need another watch.
func (w *pathWatch) appeared(ctx context.Context, name string) {
	w.mu.Lock()
	var woken []types.UID
	for uid, paths := range w.missing {
		below := func(path string) bool { return path == name || strings.HasPrefix(path, name+"/") }
		if slices.ContainsFunc(paths, below) {
			woken = append(woken, uid)
		}
	}
	if len(woken) > 0 {
		w.renew(ctx)
	}
	w.mu.Unlock()
	for _, uid := range woken {
		w.wake(ctx, uid)
	}
}
