package kubernetes

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"
)

// loseAll lets the API server lose all objects, and return with them. Meanwhile no pod ends. The controllers end first,
// because they would act on the objects that they remember.
func (w *week) loseAll(t *testing.T) {
	t.Helper()
	w.note("lose all")
	before := w.steady(t)
	w.controllers.end(t)
	w.stopServers(t)
	kept := w.path("kept")
	if err := os.CopyFS(kept, os.DirFS(w.etcdDir())); err != nil {
		t.Fatal(err)
	}
	w.replaceEtcd(t, "")
	w.startServers(t)
	until(t, func() string {
		// If its certificate has expired meanwhile, the new API server does not know the node.
		r := w.node.run(t, "agent", "status")
		if strings.Contains(r.stdout, "this is another cluster") || strings.Contains(r.stdout, "no valid client certificate") {
			return ""
		}
		return r.stdout + r.stderr
	})
	w.agent.kill()
	w.startAgent(t)
	time.Sleep(faultFor)
	w.stopServers(t)
	w.replaceEtcd(t, kept)
	w.startServers(t)
	w.startControllers(t)
	w.settle(t)
	if after := w.steady(t); !maps.Equal(before, after) {
		t.Errorf("pods after the loss of all objects: %v, before %v", after, before)
	}
}

// steady returns the running containers of pods that keep running, by their names.
func (w *week) steady(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	for id, what := range w.node.records(t) {
		for name, p := range w.pods {
			if p.ready && what == "week/"+name+"/app "+running {
				all[name] = id
			}
		}
	}
	return all
}

// restore restores the backup of an earlier day. Pods that were created since end, and those that were deleted since
// return.
func (w *week) restore(t *testing.T) {
	t.Helper()
	w.note("restore")
	w.controllers.end(t)
	w.stopServers(t)
	w.replaceEtcd(t, w.backup)
	w.api.forget()
	w.startServers(t)
	w.api.forget()
	w.startControllers(t)
	pods, err := w.api.list()
	if err != nil {
		t.Fatal(err)
	}
	kinds, before := weekKinds(), w.pods
	w.pods = map[string]*weekPod{}
	for i := range pods {
		p := &pods[i]
		at := slices.IndexFunc(kinds, func(k *weekKind) bool { return k.name == p.Labels["kind"] })
		switch {
		case p.DeletionTimestamp != nil || at < 0 || p.Namespace != "week" || p.Annotations[v1.MirrorPodAnnotationKey] != "":
		case before[p.Name] != nil:
			w.pods[p.Name] = before[p.Name]
			w.pods[p.Name].setImage(p.Spec.Containers[0].Image)
		default:
			w.pods[p.Name] = &weekPod{weekKind: kinds[at], image: p.Spec.Containers[0].Image, restarts: 1000, restored: true}
		}
	}
	_, _ = fmt.Sscan(w.must(t, "get", "configmap", "settings", "-o", "jsonpath={.data.text}"), &w.value)
}

// cleanUp deletes all pods, and checks that nothing is left of them.
func (w *week) cleanUp(t *testing.T) {
	t.Helper()
	w.note("clean up")
	for name := range w.local {
		if strings.HasPrefix(name, "hand-") {
			w.podctl(t, "delete", "-n", "week", name)
		} else if err := os.Remove(filepath.Join(w.path("manifests"), name+".yaml")); err != nil {
			t.Error(err)
		}
	}
	clear(w.local)
	clear(w.pods)
	w.must(t, "delete", "deployments,statefulsets,cronjobs,jobs", "--all", "--timeout", patience.String())
	w.must(t, "delete", "pods", "--all", "--timeout", patience.String())
	w.settle(t)
}

// weekUsage is the memory, goroutines and open files of the agent, and the bytes of its files by directory.
type weekUsage map[string]float64

func (u weekUsage) String() string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(u)) {
		all = append(all, fmt.Sprintf("%s %.0f", name, u[name]))
	}
	return strings.Join(all, ", ")
}

// usage reads the usage at rest.
func (w *week) usage(t *testing.T) weekUsage {
	t.Helper()
	time.Sleep(2 * time.Second)
	var page []byte
	until(t, func() string {
		var err error
		if page, err = fetch(t.Context(), "http://"+weekMetrics+"/metrics", ""); err != nil {
			return err.Error()
		}
		return ""
	})
	u := weekUsage{}
	for _, metric := range []string{
		"process_resident_memory_bytes", "go_goroutines", "process_open_fds", "go_memstats_heap_inuse_bytes",
	} {
		_, rest, _ := strings.Cut(string(page), "\n"+metric+" ")
		var value float64
		if _, err := fmt.Sscan(rest, &value); err != nil {
			t.Errorf("no metric %s", metric)
		}
		u[metric] = value
	}
	for _, dir := range []string{"pods", "events", "locks", "objects", "workloads", "cluster", "pulled", "claims", "pki", "."} {
		size, files := filesIn(filepath.Join(stateDir, dir))
		u["bytes of "+dir], u["files of "+dir] = size, files
	}
	u["bytes of logs"], u["files of logs"] = filesIn(podLogs)
	u["containers"] = float64(len(w.node.records(t)))
	return u
}

// filesIn returns the size and the number of all files below a directory, without other file systems.
func filesIn(dir string) (size, files float64) {
	var top, stat unix.Stat_t
	if unix.Lstat(dir, &top) != nil {
		return 0, 0
	}
	_ = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil {
			err = unix.Lstat(path, &stat)
		}
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil // It was removed meanwhile.
		case err != nil:
			return err
		case stat.Dev == top.Dev:
			size += float64(stat.Size)
			files++
		case entry.IsDir():
			return fs.SkipDir
		}
		return nil
	})
	return size, files
}

// compareUsage checks that nothing has grown between an early day and the last one.
func compareUsage(t *testing.T, first, last weekUsage) {
	t.Helper()
	t.Logf("first %v\nlast %v", first, last)
	for what, more := range map[string]float64{
		"process_resident_memory_bytes": 24 << 20, "go_goroutines": 40, "process_open_fds": 40,
		"bytes of locks": 64 << 10, "bytes of cluster": 1 << 20, "bytes of objects": 64 << 10, "files of pki": 20,
		"bytes of logs": 16 << 20, "bytes of pods": 64 << 20, "files of locks": 40,
	} {
		if last[what] > first[what]*1.2+more {
			t.Errorf("%s was %.0f, and is %.0f", what, first[what], last[what])
		}
	}
}
