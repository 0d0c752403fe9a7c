package cri

import "encoding/json"

// Info holds the used parts of a runtime's verbose status. The rest is not read, because it may have credentials of
// registries.
type Info struct {
	Config struct {
		Root         string `json:"containerdRootDir"`
		SandboxImage string `json:"sandboxImage"`
		Containerd   struct {
			Default  string `json:"defaultRuntimeName"`
			Runtimes map[string]struct {
				Options struct{ SystemdCgroup bool } `json:"options"`
			} `json:"runtimes"`
		} `json:"containerd"`
	}
	Cni struct {
		PluginDirs    []string
		PluginConfDir string
		Networks      []struct{ Config cniNetwork }
	}
}

// cniNetwork is a network with its plugins, in CNI's terms.
type cniNetwork struct {
	Name    string
	Plugins []struct {
		Network struct {
			Type string
			IPAM struct{ Type string }
		}
	}
}

// ReadInfo reads the status of containerd. For other runtimes it returns an empty Info.
func ReadInfo(info map[string]string) Info {
	var i Info
	_ = json.Unmarshal([]byte(info["config"]), &i.Config)
	_ = json.Unmarshal([]byte(info["cniconfig"]), &i.Cni)
	return i
}

// SystemdCgroup reports whether the default runtime leaves cgroups to systemd.
func (i Info) SystemdCgroup() bool {
	return i.Config.Containerd.Runtimes[i.Config.Containerd.Default].Options.SystemdCgroup
}
