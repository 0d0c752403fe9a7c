package kubeletconf

// flagRows are the settings that only flags have.
func flagRows() []Row {
	const cadvisor = "podctl has no cAdvisor."
	const lock = "An agent locks its state directory."
	const provider = "podctl runs no credential providers: use imagePullSecrets, or a credential helper of Docker."
	return []Row{
		honoured("", "kubeconfig", Text, "kubeconfig"),
		honoured("", "bootstrap-kubeconfig", Text, "bootstrap-kubeconfig"),
		honoured("", "hostname-override", Text, "node-name"),
		honoured("", "node-ip", List, "node-ip"),
		honoured("", "node-labels", Pairs, "node-labels"),
		honoured("", "root-dir", Text, "state-dir").with("/var/lib/podctl").otherwise("/var/lib/kubelet"),
		honoured("", "maximum-dead-containers", Number, "max-dead-containers").with("-1"),
		without("", "cert-dir", Text, "Certificates are in pki below the state directory."),
		without("", "cloud-provider", Text,
			"For `external`, set the taint node.cloudprovider.kubernetes.io/uninitialized=true:NoSchedule."),
		refused("", "image-credential-provider-bin-dir", Text, provider),
		refused("", "image-credential-provider-config", Text, provider),
		without("", "runtime-cgroups", Text, "podctl finds the cgroup of the runtime itself."),
		without("", "exit-on-lock-contention", Boolean, lock, "false"),
		without("", "lock-file", Text, lock),
		without("", "minimum-container-ttl-duration", Duration, "podctl has no minimum age for ended containers."),
		without("", "maximum-dead-containers-per-container", Number,
			"podctl has a limit for all containers together.", "1"),
		without("", "vmodule", Text, noLogging),
		without("", "version", Text, "It only prints the version.", "false"),
		without("", "experimental-allocatable-ignore-eviction", Boolean,
			"The thresholds of --eviction-hard always count.", "false"),
		without("", "experimental-mounter-path", Text, "podctl runs no program to mount volumes."),
		without("", "housekeeping-interval", Duration, cadvisor),
		without("", "global-housekeeping-interval", Duration, cadvisor),
		without("", "application-metrics-count-limit", Number, cadvisor),
		without("", "boot-id-file", Text, cadvisor),
		without("", "container-hints", Text, cadvisor),
		without("", "containerd", Text, cadvisor),
		without("", "containerd-namespace", Text, cadvisor),
		without("", "enable-load-reader", Boolean, cadvisor, "false"),
		without("", "event-storage-age-limit", Text, cadvisor),
		without("", "event-storage-event-limit", Text, cadvisor),
		without("", "log-cadvisor-usage", Boolean, cadvisor, "false"),
		without("", "machine-id-file", Text, cadvisor),
		without("", "storage-driver-buffer-duration", Duration, cadvisor),
		without("", "storage-driver-db", Text, cadvisor),
		without("", "storage-driver-host", Text, cadvisor),
		without("", "storage-driver-password", Text, cadvisor).hidden(),
		without("", "storage-driver-secure", Boolean, cadvisor, "false"),
		without("", "storage-driver-table", Text, cadvisor),
		without("", "storage-driver-user", Text, cadvisor).hidden(),
		// The files that these flags name are read.
		without("", configFlag, Text, "This file has the settings of the kubelet."),
		without("", configDirFlag, Text, "Its files have settings of the kubelet."),
	}
}

// Flags that name files of the kubelet.
const (
	configFlag    = "config"
	configDirFlag = "config-dir"
)

// oldRows are flags of earlier kubelets, which configurations of earlier releases still have.
func oldRows() []Row {
	const gone = "A kubelet no longer has this flag."
	return []Row{
		without("", "container-runtime", Text, gone, "remote"),
		without("", "pod-infra-container-image", Text,
			"The runtime chooses the image of sandboxes, as with a kubelet."),
		without("", "network-plugin", Text, gone, "cni"),
		without("", "cni-bin-dir", Text, gone),
		without("", "cni-conf-dir", Text, gone),
		without("", "cloud-config", Text, gone, ""),
		without("", "log-dir", Text, gone),
		without("", "log-file", Text, gone),
		without("", "log-file-max-size", Number, gone),
		without("", "stderrthreshold", Text, gone),
		without("", "logtostderr", Boolean, gone, "true"),
		without("", "alsologtostderr", Boolean, gone),
		without("", "keep-terminated-pod-volumes", Boolean, gone, "false"),
	}
}
