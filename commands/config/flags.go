package config

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/pflag"

	"github.com/podctl/podctl/commands/flags"
	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/cri"
	"github.com/podctl/podctl/runtime/node"
	"github.com/podctl/podctl/runtime/state"
)

// Flags are the flags that every command has. They are filled once, before a command runs.
type Flags struct {
	RuntimeEndpoint string
	ImageEndpoint   string
	Namespace       string
	// NamespaceGiven reports whether the command line sets the namespace.
	NamespaceGiven bool
	StateDir       string
	LogRoot        string
	CgroupRoot     string
	// ProxyMode is the routing of Service traffic: ProxyNFTables or ProxyNone.
	ProxyMode string
	// reserved are the ports of the node that pods and Services must not use.
	reserved       []podspec.Port
	RequestTimeout time.Duration
	LockTimeout    time.Duration
	Timeout        time.Duration
	Color          string
	Verbose        bool
	LogFormat      string
	// File is the configuration file that the user named.
	File string
	// Command is the command and its arguments, without flags.
	Command []string
	// Settings are the values that the command line did not set, by flag.
	Settings map[string]Setting
}

// Flags that other code refers to by name.
const (
	EndpointFlag = "runtime-endpoint"
	fileFlag     = "config"
)

// Values of --proxy-mode, as in kube-proxy. ProxyNFTables uses rules of the kernel. ProxyNone uses none, so that
// Service names resolve to pods.
const (
	ProxyNFTables = "nftables"
	ProxyNone     = "none"
)

// Register defines the flags.
func (f *Flags) Register(set *pflag.FlagSet) {
	set.StringVarP(&f.RuntimeEndpoint, EndpointFlag, "r", "",
		"Socket of the container runtime (env CONTAINER_RUNTIME_ENDPOINT)")
	set.StringVar(&f.ImageEndpoint, "image-endpoint", "", "Socket of the image service (default: the runtime's)")
	set.StringVarP(&f.Namespace, "namespace", "n", "default",
		"Namespace of pods given by name, and of manifests without a namespace")
	set.StringVar(&f.StateDir, "state-dir", state.Default().Root, "Directory for podctl's state")
	set.StringVar(&f.LogRoot, "log-root", state.Default().LogRoot, "Directory for pod logs")
	set.StringVar(&f.CgroupRoot, "cgroup-root", "", "Parent of all pod cgroups (default: the root cgroup)")
	proxyMode := &flags.Choice{Value: &f.ProxyMode, Allowed: []string{ProxyNFTables, ProxyNone}, Start: ProxyNFTables}
	set.Var(proxyMode, "proxy-mode", "Routing of Service traffic: nftables, or none (Service names resolve to pods)")
	set.Var(reservedFlagOf(&f.reserved), reservedFlag,
		"Ports of the node that pods and Services must not use, besides those in use")
	f.RequestTimeout = cri.DefaultRequestTimeout
	set.Var(&flags.Limit{Value: &f.RequestTimeout, Required: true}, "request-timeout",
		"Timeout for a request to the container runtime")
	set.Var(&flags.Limit{Value: &f.LockTimeout}, "lock-timeout",
		"Timeout for a pod that another podctl works on (0: that of --timeout)")
	set.Var(&flags.Limit{Value: &f.Timeout}, "timeout", "Timeout for the whole command (0: none)")
	set.StringVar(&f.File, fileFlag, "",
		"Configuration file (default: /etc/podctl/config.yaml, then ~/.config/podctl/config.yaml)")
	set.BoolVarP(&f.Verbose, "verbose", "v", false, "Log requests to the container runtime to stderr")
	set.Var(&flags.Choice{Value: &f.LogFormat, Allowed: []string{"text", "json"}, Start: "text"}, "log-format",
		"Log format: text or json")
	set.Var(&flags.Choice{Value: &f.Color, Allowed: []string{"auto", "always", "never"}, Start: "auto"}, "color",
		"When to use colours: auto, always or never")
}

// absolute makes relative directories absolute, because the runtime also uses them and has another working directory.
func (f *Flags) absolute() error {
	for _, dir := range []*string{&f.StateDir, &f.LogRoot} {
		if *dir == "" {
			continue
		}
		absolute, err := filepath.Abs(*dir)
		if err != nil {
			return fmt.Errorf("%s is relative to a directory that does not exist: %w", *dir, err)
		}
		*dir = absolute
	}
	return nil
}

// Layout returns the paths of podctl's files.
func (f *Flags) Layout() state.Layout {
	l := state.Layout{Root: f.StateDir, LogRoot: f.LogRoot, Command: f.Command}
	if f.LogRoot == state.Default().LogRoot {
		l.ContainerLogRoot = state.Default().ContainerLogRoot
	}
	return l
}

// EndpointSources lists the possible endpoints in order. An endpoint from a configuration file comes after the
// environment, like every setting.
func (f *Flags) EndpointSources(getenv func(string) string) cri.EndpointSources {
	set := f.Settings[EndpointFlag]
	given := []cri.Endpoint{
		{Address: f.RuntimeEndpoint, Origin: cmp.Or(set.Origin, "--"+EndpointFlag)},
		{Address: getenv("CONTAINER_RUNTIME_ENDPOINT"), Origin: "CONTAINER_RUNTIME_ENDPOINT"},
	}
	if set.FromFile {
		slices.Reverse(given)
	}
	return cri.EndpointSources{
		Given:        given,
		NodeSocket:   node.Socket(f.Layout().NodeDir()),
		CrictlConfig: "/etc/crictl.yaml",
		WellKnown:    cri.WellKnownSockets(),
	}
}
