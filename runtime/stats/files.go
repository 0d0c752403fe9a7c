package stats

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

// Files are the files of a pod. Parts that could not be measured are left out.
type Files struct {
	Volumes []VolumeFiles
	// Logs are the logs of each container, by name, and Others the other files of the pod on the node's disk.
	Logs   map[string]Used
	Others Used
	// at is the time of the measurement.
	at time.Time
}

// VolumeFiles are the files of a volume. A local volume is on the node's disk and ends with the pod.
type VolumeFiles struct {
	Name  string
	On    FileSystem
	Used  Used
	Local bool
}

// Used is the disk space and the inodes of files.
type Used struct{ Bytes, Inodes uint64 }

const (
	// filesFreshFor is how long a measurement of files is used (kubelet: volumeStatsAggPeriod).
	filesFreshFor = time.Minute
	// filesPatience is how long a request waits for files. A volume can have millions of them. The next request gets
	// what this one did not wait for.
	filesPatience = 2 * time.Second
)

// walker measures the files of pods. One walk runs at a time, and goes on if the request that began it ends.
type walker struct {
	mu    sync.Mutex
	known map[types.UID]Files
	// running is closed at the end of the walk; nil if none runs.
	running chan struct{}
}

// look returns the files of the pods of a measurement, as far as they are known after a short time.
func (w *walker) look(ctx context.Context, m *Meter, now *measurement) map[types.UID]Files {
	done := w.start(context.WithoutCancel(ctx), m, now)
	patience := time.NewTimer(filesPatience)
	defer patience.Stop()
	select {
	case <-done:
	case <-patience.C:
	case <-ctx.Done():
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return maps.Clone(w.known)
}

// start measures the files of pods whose last measurement is too old. It returns a channel that is closed at its end.
func (w *walker) start(ctx context.Context, m *Meter, now *measurement) <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.running != nil {
		return w.running
	}
	maps.DeleteFunc(w.known, func(uid types.UID, _ Files) bool { return now.pods[uid] == nil })
	if w.known == nil {
		w.known = map[types.UID]Files{}
	}
	at := m.Now()
	var old []*statsapi.PodStats
	for i := range now.summary.Pods {
		pod := &now.summary.Pods[i]
		f, found := w.known[types.UID(pod.PodRef.UID)]
		if age := at.Sub(f.at); !found || age < 0 || age >= filesFreshFor {
			old = append(old, pod)
		}
	}
	w.running = make(chan struct{})
	go w.run(ctx, m, now, old, w.running)
	return w.running
}

// run measures the files of pods.
func (w *walker) run(ctx context.Context, m *Meter, now *measurement, pods []*statsapi.PodStats, done chan struct{}) {
	for _, pod := range pods {
		var names []string
		for i := range pod.Containers {
			names = append(names, pod.Containers[i].Name)
		}
		uid := types.UID(pod.PodRef.UID)
		f := m.Files(ctx, now.pods[uid], names)
		f.at = m.Now()
		w.mu.Lock()
		w.known[uid] = f
		w.mu.Unlock()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.running = nil
	close(done)
}

// withFiles returns a summary with the files of its pods.
func withFiles(s *statsapi.Summary, files map[types.UID]Files) *statsapi.Summary {
	all := *s
	all.Pods = slices.Clone(s.Pods)
	for i := range all.Pods {
		pod := &all.Pods[i]
		if f, found := files[types.UID(pod.PodRef.UID)]; found && s.Node.Fs != nil {
			f.addTo(pod, s.Node.Fs)
		}
	}
	return &all
}

// addTo adds files to a pod. node is the file system of the node (kubelet: makePodStorageStats).
func (f *Files) addTo(pod *statsapi.PodStats, node *statsapi.FsStats) {
	at := metav1.NewTime(f.at)
	total := f.Others
	pod.VolumeStats = nil
	for i := range f.Volumes {
		v := &f.Volumes[i]
		fs := v.On.stats(at)
		if fs == nil {
			continue
		}
		fs.UsedBytes, fs.InodesUsed = &v.Used.Bytes, &v.Used.Inodes
		pod.VolumeStats = append(pod.VolumeStats, statsapi.VolumeStats{Name: v.Name, FsStats: *fs})
		if v.Local {
			total.add(v.Used)
		}
	}
	pod.Containers = slices.Clone(pod.Containers)
	for i := range pod.Containers {
		c := &pod.Containers[i]
		if logs, found := f.Logs[c.Name]; found {
			c.Logs = onDisk(node, at, logs)
			total.add(logs)
		}
		if c.Rootfs != nil {
			total.add(Used{*cmp.Or(c.Rootfs.UsedBytes, new(uint64)), *cmp.Or(c.Rootfs.InodesUsed, new(uint64))})
		}
	}
	pod.EphemeralStorage = onDisk(node, at, total)
}

// add adds other files.
func (u *Used) add(other Used) {
	u.Bytes += other.Bytes
	u.Inodes += other.Inodes
}

// onDisk returns the files' part of a file system.
func onDisk(fs *statsapi.FsStats, at metav1.Time, used Used) *statsapi.FsStats {
	part := *fs
	part.Time, part.UsedBytes, part.InodesUsed = at, &used.Bytes, &used.Inodes
	return &part
}
