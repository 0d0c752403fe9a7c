package proof

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/volume"
)

// kind is the kind of file at a place, as far as it matters for mounts.
type kind int

const (
	// unknown: only the runtime can see it, because it is in an image.
	unknown kind = iota
	missing
	directory
	file
	// throughFile: a parent of the path is a file.
	throughFile
)

// place is a mount of a container.
type place struct {
	*runtimeapi.Mount
	// at is the field that asks for it.
	at string
	// content reports whether podctl writes its content. Before that, podctl creates the mount points of other volumes
	// in it as directories (kubelet: MakeNestedMountpoints).
	content bool
	// unfinished reports whether that content is not written yet.
	unfinished bool
	// part is the kind of a part of a volume whose content is not written yet.
	part kind
}

// target returns the path in the container.
func (p *place) target() string { return path.Join("/", p.GetContainerPath()) }

// checkPlaces finds mounts that runc cannot make, and a working directory that it cannot create. Runtimes mount in the
// order of depth. They create a mount point in the mount that contains it, unless that is read-only.
func (p *Prover) checkPlaces(ref podspec.ContainerRef, config *runtimeapi.ContainerConfig) error {
	if dir := config.GetWorkingDir(); dir != "" && !filepath.IsAbs(dir) {
		return fmt.Errorf("%s: workingDir %q is not an absolute path", ref.Path, dir)
	}
	if !p.usesRunc() {
		return nil
	}
	places := p.places(ref, config)
	for i := range places {
		m := &places[i]
		if m.at == "" {
			continue
		}
		if err := checkTarget(m); err != nil {
			return fmt.Errorf("%s: %w", m.at, err)
		}
		if err := fits(m, mountedAt(places[:i], m.target())); err != nil {
			return fmt.Errorf("%s: %w", m.at, err)
		}
	}
	return checkWorkingDir(ref, config.GetWorkingDir(), places)
}

// places returns the mounts of a container in the order in which they are made, including those that every container
// has.
func (p *Prover) places(ref podspec.ContainerRef, config *runtimeapi.ContainerConfig) []place {
	places := []place{{Mount: &runtimeapi.Mount{ContainerPath: "/sys", HostPath: "/sys", Readonly: true}}}
	own := map[string]bool{}
	for i, m := range config.GetMounts() {
		one := place{Mount: m, at: ref.Path + ".terminationMessagePath"}
		switch {
		case i < len(ref.VolumeMounts):
			one.at = fmt.Sprintf("%s.volumeMounts[%d]", ref.Path, i)
			vol, _ := podspec.VolumeNamed(p.Desired, ref.VolumeMounts[i].Name)
			one.content = podspec.HasContent(vol.Volume) && ref.VolumeMounts[i].SubPath == "" &&
				ref.VolumeMounts[i].SubPathExpr == ""
			one.unfinished = one.content && p.unfinished(vol.Name)
			one.part = p.partOf(vol.Name, m.GetHostPath())
		case m.GetContainerPath() == "/etc/hosts":
			one.at = ref.Path + ": the hosts file"
		}
		own[one.target()] = true
		places = append(places, one)
	}
	for _, implied := range []string{"/etc/hosts", "/etc/hostname", "/etc/resolv.conf"} {
		if !own[implied] {
			places = append(places, place{
				Mount: &runtimeapi.Mount{ContainerPath: implied, HostPath: standIn},
				at:    ref.Path + ": the runtime's " + implied,
			})
		}
	}
	slices.SortStableFunc(places, func(a, b place) int {
		return strings.Count(a.target(), "/") - strings.Count(b.target(), "/")
	})
	return places
}

// partOf returns the kind of a part of a volume if that is not written yet.
func (p *Prover) partOf(name, source string) kind {
	sub, ok := strings.CutPrefix(source, unfinished+name+"/")
	if !ok {
		return unknown
	}
	switch isFile, isDir := volume.ContentHas(volume.Context{Desired: p.Desired}, name, sub); {
	case isFile:
		return file
	case isDir:
		return directory
	}
	return unknown
}

// checkTarget finds paths at which runc mounts nothing (runc: checkProcMount, setupDev).
func checkTarget(m *place) error {
	target := m.target()
	switch {
	case target == "/":
		return errors.New("nothing can be mounted on / of a container")
	case target == "/proc" && !isProc(m.GetHostPath()):
		return fmt.Errorf("%q cannot be mounted because it is not of type proc", target)
	case strings.HasPrefix(target, "/proc/") && !slices.Contains(procMounts(), target):
		return fmt.Errorf("%q cannot be mounted because it is inside /proc", target)
	case target == "/dev" && inside(m, "null") == missing:
		return errors.New("a volume at /dev hides the devices of the container, and has no /dev/null")
	}
	return nil
}

// procMounts are the files of /proc at which runc allows mounts.
func procMounts() []string {
	return []string{
		"/proc/cpuinfo", "/proc/diskstats", "/proc/meminfo", "/proc/stat", "/proc/swaps", "/proc/uptime",
		"/proc/loadavg", "/proc/slabinfo", "/proc/net/dev",
		"/proc/sys/kernel/ns_last_pid", "/proc/sys/crypto/fips_enabled",
	}
}

func isProc(dir string) bool {
	var st unix.Statfs_t
	return unix.Statfs(dir, &st) == nil && st.Type == unix.PROC_SUPER_MAGIC
}

// mountedAt returns the innermost mount that contains a path; nil if there is none.
func mountedAt(places []place, target string) *place {
	var found *place
	for i := range places {
		at := places[i].target()
		within := target == at || strings.HasPrefix(target, strings.TrimSuffix(at, "/")+"/")
		if within && (found == nil || len(at) >= len(found.target())) {
			found = &places[i]
		}
	}
	return found
}

// fits reports an error if a mount point neither exists nor can be created in the mount below.
func fits(m, below *place) error {
	if below == nil || strings.HasPrefix(m.target(), "/sys/fs/cgroup") {
		return nil
	}
	what, there := inside(m, ""), inside(below, m.below(below))
	if below.content && m.isVolume() && insideDir(below.GetHostPath(), m.below(below)) == missing {
		there = directory
	}
	switch {
	case there == throughFile:
		return fmt.Errorf("%s is below a file of the volume mounted at %s: not a directory", m.target(), below.target())
	case there == missing && below.GetReadonly():
		return fmt.Errorf("%s does not exist in the mount at %s, and cannot be created there: read-only file system",
			m.target(), below.target())
	case there == directory && what == file:
		return fmt.Errorf("a file cannot be mounted on %s, which is a directory in the mount at %s: not a directory",
			m.target(), below.target())
	case there == file && what == directory:
		return fmt.Errorf("a directory cannot be mounted on %s, which is a file in the mount at %s: not a directory",
			m.target(), below.target())
	}
	return nil
}

// isVolume reports whether a volume is mounted, and not a file that podctl or the runtime adds.
func (p *place) isVolume() bool { return strings.Contains(p.at, ".volumeMounts[") }

// below returns the path of a mount point inside another mount.
func (p *place) below(other *place) string {
	return strings.TrimPrefix(strings.TrimPrefix(p.target(), other.target()), "/")
}

// inside returns the kind of a path inside a mount; of the mount itself if the path is empty. A path that is not on
// disk yet will be a directory.
func inside(m *place, sub string) kind {
	switch source := m.GetHostPath(); {
	case (m.GetImage() != nil || m.content) && sub == "":
		return directory
	case m.part != unknown && sub == "":
		return m.part
	case m.part == file:
		return throughFile
	case m.GetImage() != nil, m.unfinished, strings.HasPrefix(source, unfinished):
		return unknown
	case sub == "":
		if found := kindOf(os.Stat(source)); found != missing {
			return found
		}
		return directory
	default:
		return insideDir(source, sub)
	}
}

// insideDir follows links like the container: never out of the mount.
func insideDir(dir, sub string) kind {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return kindOf(nil, err)
	}
	defer root.Close() //nolint:errcheck // a handle of a directory
	return kindOf(root.Stat(sub))
}

func kindOf(info fs.FileInfo, err error) kind {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return missing
	case errors.Is(err, syscall.ENOTDIR):
		return throughFile
	case err != nil:
		return unknown
	case info.IsDir():
		return directory
	}
	return file
}

// checkWorkingDir finds a working directory that is a file of a volume, or that cannot be created.
func checkWorkingDir(ref podspec.ContainerRef, dir string, places []place) error {
	target := path.Join("/", dir)
	below := mountedAt(places, target)
	if dir == "" || below == nil || below.at == "" {
		return nil
	}
	switch inside(below, strings.TrimPrefix(strings.TrimPrefix(target, below.target()), "/")) {
	case file, throughFile:
		return fmt.Errorf("%s.workingDir: %s is not a directory in the mount at %s", ref.Path, target, below.target())
	case missing:
		if below.GetReadonly() {
			return fmt.Errorf("%s.workingDir: %s does not exist in the mount at %s, and cannot be created there: "+
				"read-only file system",
				ref.Path, target, below.target())
		}
	case unknown, directory:
	}
	return nil
}
