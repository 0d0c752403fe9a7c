package eviction

import (
	"context"
	"errors"
	"path/filepath"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/safefs"
	"github.com/podctl/podctl/runtime/state/statedir"
)

// addSized adds the volumes of a pod that have a sizeLimit.
func (m *Meter) addSized(ctx context.Context, pod *v1.Pod, u *Usage) error {
	return m.walks.run(ctx, func(yield func() error) error {
		return m.addVolumes(pod, u, yield, func(vol *v1.Volume) bool { return sizeLimit(vol) != nil })
	})
}

// addFiles adds the volumes of a pod that have a sizeLimit or are on the node's disk, its hosts file and the logs of
// its containers.
func (m *Meter) addFiles(ctx context.Context, pod *v1.Pod, u *Usage) error {
	return m.addSome(ctx, pod, u, func(vol *v1.Volume) bool {
		return isLocal(vol) || sizeLimit(vol) != nil
	})
}

// addSome adds the volumes of a pod that count, its hosts file and the logs of its containers.
func (m *Meter) addSome(ctx context.Context, pod *v1.Pod, u *Usage, counts func(*v1.Volume) bool) error {
	return m.walks.run(ctx, func(yield func() error) error {
		err := m.addVolumes(pod, u, yield, counts)
		u.Hosts = Disk{Bytes: statedir.Size(m.layout.Pod(pod.UID).EtcHosts()), Inodes: 1}
		return errors.Join(err, m.addLogs(pod, u, yield))
	})
}

// addVolumes adds the volumes of a pod that count. The error is the end of the walk.
func (m *Meter) addVolumes(pod *v1.Pod, u *Usage, yield func() error, counts func(*v1.Volume) bool) error {
	for i := range pod.Spec.Volumes {
		vol := &pod.Spec.Volumes[i]
		if !counts(vol) {
			continue
		}
		dir, err := m.layout.Pod(pod.UID).VolumeDir(podspec.VolumePlugin(vol), vol.Name)
		if err != nil {
			continue // such a volume cannot exist
		}
		disk, err := treeUsage(dir, yield)
		u.Volumes = append(u.Volumes, VolumeUsage{Name: vol.Name, Path: dir, Disk: disk, Local: isLocal(vol)})
		if err != nil {
			return err
		}
	}
	return nil
}

// addLogs adds the logs of the containers in u. The error is the end of the walk.
func (m *Meter) addLogs(pod *v1.Pod, u *Usage, yield func() error) error {
	logs := m.layout.Pod(pod.UID).Logs(pod.Namespace, pod.Name)
	for i := range u.Containers {
		c := &u.Containers[i]
		dir, err := logs.Open(c.Name)
		if err != nil {
			continue // nothing is logged
		}
		disk, err := dir.FileUsage(yield)
		c.Logs = &Disk{disk.Bytes, disk.Inodes}
		if err = errors.Join(err, dir.Close()); err != nil {
			return err
		}
	}
	return nil
}

// isLocal reports whether a volume is on the node's disk and ends with the pod (kubelet: IsLocalEphemeralVolume).
func isLocal(vol *v1.Volume) bool {
	return vol.ConfigMap != nil || vol.EmptyDir != nil && vol.EmptyDir.Medium == v1.StorageMediumDefault
}

// volumeLevels is how many elements at the end of a volume's path belong to the pod.
const volumeLevels = 4

// treeUsage measures a volume. A volume that does not exist or cannot be opened uses nothing.
func treeUsage(path string, yield func() error) (Disk, error) {
	dir, err := safefs.OpenDirNoLinks(filepath.Clean(path), volumeLevels)
	if err != nil {
		return Disk{}, nil //nolint:nilerr // a missing measurement evicts no pod
	}
	used, err := dir.Usage(yield)
	return Disk{used.Bytes, used.Inodes}, errors.Join(err, dir.Close())
}

// turns lets one of several goroutines run at a time.
type turns chan struct{}

func newTurns() turns { return make(turns, 1) }

// take waits for the turn.
func (t turns) take(ctx context.Context) error {
	select {
	case t <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// give ends the turn.
func (t turns) give() { <-t }

// turn is how long a goroutine runs while others wait.
const turn = 100 * time.Millisecond

// run waits for the turn and calls do. yield lets other goroutines run once the turn has lasted long enough. It returns
// an error once the context has ended; do must then return.
func (t turns) run(ctx context.Context, do func(yield func() error) error) error {
	if err := t.take(ctx); err != nil {
		return err
	}
	since, holds := time.Now(), true
	defer func() {
		if holds {
			t.give()
		}
	}()
	return do(func() error {
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case time.Since(since) < turn:
			return nil
		}
		t.give()
		err := t.take(ctx)
		since, holds = time.Now(), err == nil
		return err
	})
}
