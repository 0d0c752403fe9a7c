package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/podctl/podctl/runtime/safefs"
)

// DefaultSandboxImage is the image for the pods' sandboxes, which this repository builds.
const DefaultSandboxImage = "registry.local/podctl/pause:1"

// healthTimeout limits the time until a started containerd is healthy. podctl notices at once if it exits before.
const healthTimeout = 5 * time.Minute

// Options define how a node is started.
type Options struct {
	// Dir is the node's directory.
	Dir string
	// Containerd is the program. Empty means the one that the node used before, or else the one in PATH.
	Containerd string
	// SandboxImage is the reference of the pause image. Empty means that of the node before, or else
	// DefaultSandboxImage.
	SandboxImage string
	// CgroupDriver is Systemd or Cgroupfs. Empty means that of the node before, or else Systemd on a machine with
	// cgroup v2 and systemd, and Cgroupfs on others.
	CgroupDriver string
	// Load lists image archives to load after the start.
	Load []string
	// Report, if not nil, receives a line for each event.
	Report func(string)
}

// Status is the status of a node.
type Status struct {
	Running bool `json:"running"`
	// PID is containerd's process id, or zero if it does not run.
	PID     int    `json:"pid,omitempty"`
	Version string `json:"version,omitempty"`
	Socket  string `json:"socket"`
	Subnet  string `json:"subnet,omitempty"`
	Bridge  string `json:"bridge,omitempty"`
	Pods    int    `json:"pods"`
	// SandboxImage is the image that every pod needs. SandboxImageMissing reports whether the node lacks it.
	SandboxImage        string `json:"sandboxImage,omitempty"`
	SandboxImageMissing bool   `json:"sandboxImageMissing,omitempty"`
	// CgroupDriver is the driver for the cgroups of containers.
	CgroupDriver string `json:"cgroupDriver,omitempty"`
	// Log is the path of containerd's log.
	Log string `json:"log"`
}

// layout is the directory of a node.
type layout string

func (l layout) path(parts ...string) string {
	return filepath.Join(append([]string{string(l)}, parts...)...)
}

func (l layout) socket() string { return l.path("containerd.sock") }

// shimSocket is where the shims send events to containerd.
func (l layout) shimSocket() string { return l.socket() + ".ttrpc" }
func (l layout) config() string     { return l.path("config.toml") }
func (l layout) log() string        { return l.path("containerd.log") }

// Socket returns the CRI socket of the node in a directory.
func Socket(dir string) string { return layout(dir).socket() }

func (o *Options) report(format string, args ...any) {
	if o.Report != nil {
		o.Report(fmt.Sprintf(format, args...))
	}
}

// Up starts the node and returns when it is healthy. It does not change a running node. If containerd has died, it
// starts it again; the containers have continued to run.
func Up(ctx context.Context, o Options) (*Status, error) {
	l, err := layoutOf(&o)
	if err != nil {
		return nil, err
	}
	unlock, err := lockDir(ctx, l)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if err = l.prepare(); err != nil {
		return nil, fmt.Errorf("preparing the node: %w", err)
	}
	p, running, err := readProcess(l)
	if err != nil {
		return nil, err
	}
	if running {
		o.report("containerd is already running, pid %d", p.PID)
	}
	if p != nil && p.found {
		if err = p.remember(l); err != nil {
			return nil, fmt.Errorf("looking at the node: %w", err)
		}
	}
	if err = checkDriver(o.CgroupDriver, p); err != nil {
		return nil, err
	}
	if p, err = revive(ctx, l, &o, p); err != nil {
		return nil, err
	}
	for _, archive := range o.Load {
		names, err := loadArchive(ctx, l, archive)
		if err != nil {
			return nil, err
		}
		o.report("loaded %v", names)
	}
	s := status(ctx, l, p)
	return s, addSandboxImage(ctx, l, &o, s)
}

// revive returns the containerd of a node once it is healthy. It starts it if it does not run, and again if it exits
// during the wait. A process that was just killed may still seem to run.
func revive(ctx context.Context, l layout, o *Options, p *process) (*process, error) {
	if p != nil && p.alive(l) {
		if err := waitHealthy(ctx, l, p); !errors.Is(err, errEnded) {
			return p, err
		}
	}
	p, err := launch(ctx, l, o.asBefore(p), p)
	if err != nil {
		return nil, err
	}
	return p, waitHealthy(ctx, l, p)
}

// asBefore sets missing options to those that the node was started with, because another or older containerd may not
// understand its files.
func (o *Options) asBefore(p *process) *Options {
	with := *o
	if p != nil {
		with.SandboxImage = cmp.Or(o.SandboxImage, p.SandboxImage)
		with.Containerd = cmp.Or(o.Containerd, p.Program)
		if _, err := os.Stat(p.Program); err != nil && o.Containerd == "" && p.Program != "" {
			o.report("%s, which the node was started with, is gone; podctl uses the containerd in PATH", p.Program)
			with.Containerd = ""
		}
	}
	with.SandboxImage = cmp.Or(with.SandboxImage, DefaultSandboxImage)
	with.CgroupDriver = cmp.Or(p.cgroupDriver(), o.CgroupDriver, usualDriver("/"))
	return &with
}

// layoutOf returns the directory of the node, or an error if it is unsuitable.
func layoutOf(o *Options) (layout, error) {
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return "", fmt.Errorf("preparing the node: %w", err)
	}
	l := layout(dir)
	if len(l.socket()) >= maxSocketPath {
		return "", fmt.Errorf("preparing the node: the path of its socket %s is longer than %d characters; "+
			"choose a shorter --state-dir", l.socket(), maxSocketPath)
	}
	if os.Geteuid() != 0 {
		return "", errors.New("preparing the node: a container runtime needs root")
	}
	return l, nil
}

// prepare creates the node's directory with access for its owner only.
func (l layout) prepare() error {
	for _, sub := range []string{"", "cni/net.d", "cni/ipam"} {
		if err := os.MkdirAll(l.path(sub), 0o700); err != nil {
			return err
		}
	}
	// Also for an existing directory, because its sockets exist for a moment before they get their modes.
	if err := os.Chmod(l.path(), 0o700); err != nil {
		return err
	}
	return safefs.CheckDir(l.path())
}

// maxSocketPath is the kernel's maximum length for the path of a unix socket.
const maxSocketPath = 107

// launch writes the configuration and starts containerd.
func launch(ctx context.Context, l layout, o *Options, before *process) (*process, error) {
	programs, err := findPrograms(o.Containerd)
	if err != nil {
		return nil, err
	}
	version, err := containerdVersion(ctx, programs.containerd)
	if err != nil {
		return nil, err
	}
	network, err := chooseNetwork(l, before)
	if err != nil {
		return nil, err
	}
	facts := machineFacts(l)
	files := map[string]string{
		l.config(): configFor(version.major, configInput{
			layout: l, sandboxImage: o.SandboxImage, cniBin: programs.cni,
			restrictOOM: facts.restrictOOM, snapshotter: facts.snapshotter, systemdCgroup: o.CgroupDriver == Systemd,
		}),
		l.path("cni", "net.d", "10-podctl.conflist"): network.conflist(l),
	}
	for path, text := range files {
		if err := safefs.WriteFile(path, []byte(text)); err != nil {
			return nil, fmt.Errorf("preparing the node: %w", err)
		}
	}
	o.report("starting containerd %s", version)
	return start(l, process{ //nolint:contextcheck // the process outlives this call
		Version: version.String(), Program: programs.containerd, SandboxImage: o.SandboxImage,
		CgroupDriver: o.CgroupDriver, Subnet: network.subnet, Bridge: network.bridge,
	})
}

// Get returns the status of the node in a directory.
func Get(ctx context.Context, dir string) (*Status, error) {
	l := layout(dir)
	if err := safefs.CheckDir(dir); err != nil && !safefs.NotExist(err) {
		return nil, fmt.Errorf("looking at the node: %w", err)
	}
	p, running, err := readProcess(l)
	if err != nil {
		return nil, err
	}
	if !running {
		return &Status{Socket: l.socket(), Log: l.log()}, nil
	}
	return status(ctx, l, p), nil
}

func status(ctx context.Context, l layout, p *process) *Status {
	s := &Status{
		Running: true, PID: p.PID, Version: p.Version, Socket: l.socket(),
		Subnet: p.Subnet, Bridge: p.Bridge, SandboxImage: p.SandboxImage, CgroupDriver: p.cgroupDriver(), Log: l.log(),
	}
	if there, err := hasImage(ctx, l, s.SandboxImage); err == nil {
		s.SandboxImageMissing = !there
	}
	if n, err := countPods(ctx, l); err == nil {
		s.Pods = n
	}
	return s
}
