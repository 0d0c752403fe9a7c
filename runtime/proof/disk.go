package proof

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/podspec/input"
	"github.com/podctl/podctl/runtime/criconfig"
	"github.com/podctl/podctl/runtime/state"
	"github.com/podctl/podctl/runtime/volume"
)

// Disk is the part of a criconfig.Source that lies on disk. It makes nothing: what a start
// would make is named, or stood in for.
type Disk struct {
	Volumes volume.Context
	// Unfinished is that of the Prover.
	Unfinished map[string]bool
}

// standIn is mounted for files that are made when a container is created.
const standIn = os.DevNull

// envFileMax bounds an environment file, in bytes.
const envFileMax = 1 << 20

// EnvFile reads one file of a volume. Links in it that lead out are refused.
func (d Disk) EnvFile(ref *v1.FileKeySelector) (text []byte, err error) {
	vol, _ := podspec.FindVolume(d.Volumes.Desired.Pod, ref.VolumeName)
	if vol == nil {
		return nil, fmt.Errorf("the pod has no volume %q", ref.VolumeName)
	}
	path, err := d.VolumePath(vol)
	if err != nil {
		return nil, fmt.Errorf("volume %q: %w", vol.Name, err)
	}
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	f, err := root.OpenFile(ref.Path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if info, statErr := f.Stat(); statErr != nil || !info.Mode().IsRegular() {
		return nil, errors.Join(statErr, fmt.Errorf("%s in volume %s is not a regular file", ref.Path, ref.VolumeName))
	}
	text, err = input.ReadAtMost(f, envFileMax)
	if err != nil {
		return nil, fmt.Errorf("%s in volume %s: %w", ref.Path, ref.VolumeName, err)
	}
	return text, nil
}

// Unwritten stands for a value that an init container will write.
func (Disk) Unwritten() string { return "?" }

// Users is the range of ids of a pod with a user namespace of its own: the one it has been
// given, or one that stands for it until it is given.
func (d Disk) Users() (*criconfig.IDMapping, error) {
	if !criconfig.OwnUsers(d.Volumes.Desired.Pod) {
		return nil, nil
	}
	ids, given, err := d.Volumes.Pod.IDs().Read()
	if err != nil {
		return nil, err
	}
	if !given {
		ids = state.AnyIDs()
	}
	return &criconfig.IDMapping{HostID: ids.First, Length: ids.Length}, nil
}

// VolumePath is where a volume's content lies.
func (d Disk) VolumePath(vol *v1.Volume) (string, error) { return d.Volumes.Path(vol) }

// SubPath is where the part of a volume lies, or will be made.
func (d Disk) SubPath(ref podspec.ContainerRef, mount int, part func() (string, error)) (string, error) {
	sub, err := part()
	if err != nil {
		return "", err
	}
	if d.Unfinished[ref.VolumeMounts[mount].Name] {
		return d.unfinishedPart(ref, mount, sub)
	}
	return volume.CheckSubPath(d.Volumes, ref, mount, sub)
}

// unfinishedPart names a part of a volume whose content is not there yet.
func (d Disk) unfinishedPart(ref podspec.ContainerRef, mount int, sub string) (string, error) {
	return unfinished + ref.VolumeMounts[mount].Name + "/" + sub, nil
}

// unfinished begins what is no path on disk.
const unfinished = "unfinished:"

// Services are left out: nothing that is proved depends on them.
func (Disk) Services() map[string]string { return nil }

// Hosts stands for the hosts file.
func (Disk) Hosts([]string) (string, error) { return standIn, nil }

// TerminationLog stands for the file of the termination message.
func (Disk) TerminationLog(string) (string, error) { return standIn, nil }
