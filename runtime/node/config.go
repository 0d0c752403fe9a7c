package node

import "fmt"

// configInput holds the values for containerd's configuration.
type configInput struct {
	layout       layout
	sandboxImage string
	// cniBin is the directory of the CNI plugins.
	cniBin string
	// restrictOOM is needed if the kernel does not allow lowering an out-of-memory score, because the capability
	// SYS_RESOURCE is missing.
	restrictOOM bool
	snapshotter string
	// systemdCgroup lets systemd manage the cgroups of pods.
	systemdCgroup bool
}

// configFor returns the configuration in the format of a major version of containerd. Only the streaming server listens
// on a port, on the loopback address.
func configFor(major int, in configInput) string {
	if major >= 2 {
		return configV3(in)
	}
	return configV2(in)
}

func head(version int, in configInput) string {
	return fmt.Sprintf(`version = %d
root = %q
state = %q

[grpc]
  address = %q

`, version, in.layout.path("root"), in.layout.path("state"), in.layout.socket())
}

// configV2 is for containerd 1.6 and 1.7.
func configV2(in configInput) string {
	return head(2, in) + fmt.Sprintf(`[plugins."io.containerd.internal.v1.opt"]
  path = %q

[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = %q
  restrict_oom_score_adj = %t
  stream_server_address = "127.0.0.1"
  stream_server_port = "0"

  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = %q
    default_runtime_name = "runc"

    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"

      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        SystemdCgroup = %t

  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = %q
    conf_dir = %q
`, in.layout.path("opt"), in.sandboxImage, in.restrictOOM, in.snapshotter, in.systemdCgroup,
		in.cniBin, in.layout.path("cni", "net.d"))
}

// configV3 is for containerd 2.
func configV3(in configInput) string {
	return head(3, in) + fmt.Sprintf(`[plugins.'io.containerd.internal.v1.opt']
  path = %q

[plugins.'io.containerd.grpc.v1.cri']
  stream_server_address = "127.0.0.1"
  stream_server_port = "0"

[plugins.'io.containerd.cri.v1.images']
  snapshotter = %q

  [plugins.'io.containerd.cri.v1.images'.pinned_images]
    sandbox = %q

[plugins.'io.containerd.cri.v1.runtime']
  restrict_oom_score_adj = %t

  [plugins.'io.containerd.cri.v1.runtime'.containerd]
    default_runtime_name = "runc"

    [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"

      [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
        SystemdCgroup = %t

  [plugins.'io.containerd.cri.v1.runtime'.cni]
    bin_dirs = [%q]
    conf_dir = %q
`, in.layout.path("opt"), in.snapshotter, in.sandboxImage, in.restrictOOM, in.systemdCgroup,
		in.cniBin, in.layout.path("cni", "net.d"))
}
