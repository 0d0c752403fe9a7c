package diagnose

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podctl/podctl/runtime/cgroup"
	"github.com/podctl/podctl/runtime/cri"
	"github.com/podctl/podctl/runtime/doctor"
	"github.com/podctl/podctl/runtime/machine"
	"github.com/podctl/podctl/runtime/mounts"
	"github.com/podctl/podctl/runtime/state"
)

// diagnoseTimeout limits a diagnosis, because the runtime may hang.
const diagnoseTimeout = 10 * time.Second

// Diagnosis holds the inputs of Diagnose.
type Diagnosis struct {
	// Client is the connection to the runtime. If it is nil, Err is the reason.
	Client *cri.Client
	Err    error
	Layout state.Layout
	Now    time.Time
}

// Diagnose collects facts that show whether pods can run here. It changes nothing, and omits unknown facts.
func Diagnose(ctx context.Context, d Diagnosis) *doctor.Facts {
	f := &doctor.Facts{
		Time:    d.Now,
		Cgroups: cgroupFacts(),
		Process: machine.OwnProcess(),
		Kernel:  machine.Kernel("/"),
		State:   stateFacts(d.Layout),
		Disks:   []doctor.Disk{},
	}
	addDisk(f, doctor.Disk{Name: "state directory", Path: d.Layout.Present(), LowPercent: 10})
	if d.Client == nil {
		f.Endpoint = unusableEndpoint(d.Err)
		return f
	}
	f.Endpoint = doctor.Endpoint{Address: d.Client.Endpoint.Address, Origin: d.Client.Endpoint.Origin}
	if k, found := machine.FindKubelet("/proc", d.Client.Endpoint.Address); found {
		f.Kubelet = &doctor.Kubelet{Process: k.Process, PID: k.PID}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, diagnoseTimeout,
		fmt.Errorf("container runtime at %s: gave no answer within %s", d.Client.Endpoint, diagnoseTimeout))
	defer cancel()
	if err := addRuntime(ctx, d.Client, f); err != nil {
		f.Runtime.Problem = err.Error()
	}
	return f
}

func unusableEndpoint(err error) doctor.Endpoint {
	e := doctor.Endpoint{Problem: fmt.Sprint(err)}
	if unavailable := (*cri.UnavailableError)(nil); errors.As(err, &unavailable) {
		e.Address, e.Origin = unavailable.Endpoint.Address, unavailable.Endpoint.Origin
	}
	return e
}

// addRuntime adds the runtime's description of itself.
func addRuntime(ctx context.Context, c *cri.Client, f *doctor.Facts) error {
	f.Runtime = &doctor.Runtime{}
	version, err := c.Version(ctx, &runtimeapi.VersionRequest{})
	if err != nil {
		return err
	}
	f.Runtime.Name, f.Runtime.Version = version.GetRuntimeName(), version.GetRuntimeVersion()
	status, err := c.Status(ctx, &runtimeapi.StatusRequest{Verbose: true})
	if err != nil {
		return err
	}
	for _, condition := range status.GetStatus().GetConditions() {
		f.Runtime.Conditions = append(f.Runtime.Conditions, doctor.Condition{
			Type:    condition.GetType(),
			Status:  condition.GetStatus(),
			Reason:  condition.GetReason(),
			Message: condition.GetMessage(),
		})
	}
	info := cri.ReadInfo(status.GetInfo())
	f.CNI = network(&info)
	f.Runtime.SystemdCgroup = info.SystemdCgroup()
	f.Runtime.SandboxImage = sandboxImage(ctx, c, f.Runtime.Name, info.Config.SandboxImage)
	addDisk(f, doctor.Disk{Name: "runtime", Path: runtimeRoot(ctx, c, info), LowPercent: 15})
	return addDriver(ctx, c, f.Runtime)
}

// sandboxImage returns the image of the sandboxes. A runtime that does not name it pins it (containerd since version
// 1.7). For another runtime without pinned images it is unknown.
func sandboxImage(ctx context.Context, c *cri.Client, runtime, name string) *doctor.SandboxImage {
	if name != "" {
		reply, err := c.Images.ImageStatus(ctx, &runtimeapi.ImageStatusRequest{
			Image: &runtimeapi.ImageSpec{Image: name},
		})
		if err != nil {
			return nil
		}
		return &doctor.SandboxImage{Name: name, Present: reply.GetImage() != nil}
	}
	reply, err := c.Images.ListImages(ctx, &runtimeapi.ListImagesRequest{})
	if err != nil {
		return nil
	}
	for _, img := range reply.GetImages() {
		if img.GetPinned() {
			return &doctor.SandboxImage{
				Name:    cmp.Or(slices.Concat(img.GetRepoTags(), []string{img.GetId()})...),
				Present: true,
			}
		}
	}
	if runtime != "containerd" {
		return nil
	}
	return &doctor.SandboxImage{}
}

func addDriver(ctx context.Context, c *cri.Client, r *doctor.Runtime) error {
	reply, err := c.RuntimeConfig(ctx, &runtimeapi.RuntimeConfigRequest{})
	switch {
	case cri.IsUnimplemented(err):
		return nil
	case err != nil:
		return err
	}
	r.Driver = "cgroupfs"
	if reply.GetLinux().GetCgroupDriver() == runtimeapi.CgroupDriver_SYSTEMD {
		r.Driver = "systemd"
	}
	return nil
}

// runtimeRoot returns where the runtime stores images and containers, or an empty string if it does not report it.
func runtimeRoot(ctx context.Context, c *cri.Client, info cri.Info) string {
	if info.Config.Root != "" {
		return info.Config.Root
	}
	reply, err := c.Images.ImageFsInfo(ctx, &runtimeapi.ImageFsInfoRequest{})
	if err != nil || len(reply.GetImageFilesystems()) == 0 {
		return ""
	}
	return reply.GetImageFilesystems()[0].GetFsId().GetMountpoint()
}

// network returns the runtime's CNI configuration, or nil if the runtime does not report its directory.
func network(i *cri.Info) *doctor.CNI {
	if i.Cni.PluginConfDir == "" {
		return nil
	}
	c := &doctor.CNI{
		ConfDir:    i.Cni.PluginConfDir,
		PluginDirs: i.Cni.PluginDirs,
		Configs:    []string{},
		Networks:   []string{},
		Wanted:     []string{},
		Installed:  []string{},
	}
	for _, pattern := range []string{"*.conf", "*.conflist", "*.json"} {
		c.Configs = append(c.Configs, baseNames(filepath.Join(c.ConfDir, pattern))...)
	}
	for _, dir := range c.PluginDirs {
		c.Installed = append(c.Installed, baseNames(filepath.Join(dir, "*"))...)
	}
	for _, n := range i.Cni.Networks {
		if n.Config.Name != "cni-loopback" { // This network belongs to the runtime itself.
			c.Networks = append(c.Networks, n.Config.Name)
		}
		for _, p := range n.Config.Plugins {
			c.Wanted = append(c.Wanted, p.Network.Type, p.Network.IPAM.Type)
		}
	}
	slices.Sort(c.Wanted)
	c.Wanted = slices.DeleteFunc(slices.Compact(c.Wanted), func(name string) bool { return name == "" })
	return c
}

func baseNames(pattern string) []string {
	names, _ := filepath.Glob(pattern)
	for i := range names {
		names[i] = filepath.Base(names[i])
	}
	return names
}

// addDisk adds a file system if its space can be read.
func addDisk(f *doctor.Facts, d doctor.Disk) {
	fs, err := machine.FileSystemOf(d.Path)
	if err != nil {
		return
	}
	d.Size, d.Free = uint64(fs.Size), uint64(fs.Free)                 // neither is negative
	d.Inodes, d.InodesFree = uint64(fs.Inodes), uint64(fs.InodesFree) // as above
	f.Disks = append(f.Disks, d)
}

func cgroupFacts() doctor.Cgroups {
	s := cgroup.Look()
	return doctor.Cgroups{Version: s.Version, Controllers: s.Controllers, Writable: s.Writable}
}

func stateFacts(l state.Layout) doctor.State {
	h := l.Health()
	s := doctor.State{
		Path: l.Root, Exists: h.Exists, Open: h.Mode&0o077 != 0, Writable: h.Writable,
		Checkpoints: h.Checkpoints, OpenCheckpoints: h.Open, NewestWrite: h.NewestWrite,
	}
	if h.Exists {
		s.Mode = fmt.Sprintf("%04o", h.Mode)
	}
	if h.Unusable != nil {
		s.Problem = h.Unusable.Error()
	}
	if hidden, err := mounts.HiddenBelow(l.Root); err == nil {
		for _, m := range hidden {
			s.Hidden, s.HiddenBy = append(s.Hidden, m.Path), m.Cover
		}
	}
	for _, err := range h.Unreadable {
		s.Unreadable = append(s.Unreadable, err.Error())
	}
	return s
}
