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

// DefaultSandboxImage is the image of the pods' sandboxes, which this
// repository builds.
const DefaultSandboxImage = "registry.local/podctl/pause:1"

// healthTimeout is how long a started containerd may take to be healthy. If it ends before, podctl notices at once.
const healthTimeout = 5 * time.Minute

// Options say how a node is brought up.
type Options struct {
	// Dir is the node's directory.
	Dir string
	// Containerd is the program; empty means the one that the node was started with
	// before, or else the one in PATH.
	Containerd string
	// SandboxImage is the reference of the pause image; empty means that of the node
	// before, or else DefaultSandboxImage.
	SandboxImage string
	// CgroupDriver is Systemd or Cgroupfs; empty means that of the node before, or else Systemd
	// on a machine with cgroup v2 that systemd runs, and Cgroupfs on others.
	CgroupDriver string
	// Load lists image archives to load once the node is up.
	Load []string
	// Report receives a line for each thing that happens; it may be nil.
	Report func(string)
}

// Status is what is known of a node.
type Status struct {
	Running bool `json:"running"`
	// PID is containerd's process id, zero when it does not run.
	PID     int    `json:"pid,omitempty"`
	Version string `json:"version,omitempty"`
	Socket  string `json:"socket"`
	Subnet  string `json:"subnet,omitempty"`
	Bridge  string `json:"bridge,omitempty"`
	Pods    int    `json:"pods"`
	// SandboxImage is what every pod needs, SandboxImageMissing reports whether the node lacks it.
	SandboxImage        string `json:"sandboxImage,omitempty"`
	SandboxImageMissing bool   `json:"sandboxImageMissing,omitempty"`
	// CgroupDriver is what makes the cgroups of containers.
	CgroupDriver string `json:"cgroupDriver,omitempty"`
	// Log is containerd's own log.
	Log string `json:"log"`
}

// layout is where a node's things lie.
type layout string

func (l layout) path(parts ...string) string {
	return filepath.Join(append([]string{string(l)}, parts...)...)
}

func (l layout) socket() string { return l.path("containerd.sock") }

// shimSocket is where the shims send containerd their events.
func (l layout) shimSocket() string { return l.socket() + ".ttrpc" }
func (l layout) config() string     { return l.path("config.toml") }
func (l layout) log() string        { return l.path("containerd.log") }

// Socket is the CRI socket of the node in a directory.
func Socket(dir string) string { return layout(dir).socket() }

func (o *Options) report(format string, args ...any) {
	if o.Report != nil {
		o.Report(fmt.Sprintf(format, args...))
	}
}

// Up brings the node up and returns when it is healthy. A node that runs already
// is left alone; one whose containerd died is started again, and its containers
// have gone on.
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
		o.report("containerd runs already, pid %d", p.PID)
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

// revive returns the containerd of a node once it is healthy. It is started when it does not
// run, and once more when it ends while it is waited for: one that was killed a moment ago
// seems to run still.
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

// asBefore fills what is not said with what the node was started with: another containerd
// would have to understand its files, and an older one does not.
func (o *Options) asBefore(p *process) *Options {
	with := *o
	if p != nil {
		with.SandboxImage = cmp.Or(o.SandboxImage, p.SandboxImage)
		with.Containerd = cmp.Or(o.Containerd, p.Program)
		if _, err := os.Stat(p.Program); err != nil && o.Containerd == "" && p.Program != "" {
			o.report("%s, which the node was started with, is gone; the containerd in PATH is taken", p.Program)
			with.Containerd = ""
		}
	}
	with.SandboxImage = cmp.Or(with.SandboxImage, DefaultSandboxImage)
	with.CgroupDriver = cmp.Or(p.cgroupDriver(), o.CgroupDriver, usualDriver("/"))
	return &with
}

// layoutOf is where the node lies, if one can live there.
func layoutOf(o *Options) (layout, error) {
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return "", fmt.Errorf("preparing the node: %w", err)
	}
	l := layout(dir)
	if len(l.socket()) >= maxSocketPath {
		return "", fmt.Errorf("preparing the node: the path of its socket %s is longer than %d characters; choose a shorter --state-dir", l.socket(), maxSocketPath)
	}
	if os.Geteuid() != 0 {
		return "", errors.New("preparing the node: a container runtime needs root")
	}
	return l, nil
}

// prepare makes the node's directory, for its owner alone.
func (l layout) prepare() error {
	for _, sub := range []string{"", "cni/net.d", "cni/ipam"} {
		if err := os.MkdirAll(l.path(sub), 0o700); err != nil {
			return err
		}
	}
	// Also where it was there before: its sockets are made a moment before they get their modes.
	if err := os.Chmod(l.path(), 0o700); err != nil {
		return err
	}
	return safefs.CheckDir(l.path())
}

// maxSocketPath is what the kernel takes as the path of a unix socket.
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
