package fields

import "slices"

// Notes of several rows.
const (
	devices    = "ResourceClaims (DRA) need an API server, which podctl does not have."
	allocation = "podctl does not allocate devices of ResourceClaims."
	claims     = "The claim must be bound to a volume of type hostPath or local. Otherwise the pod waits."
	measured   = "Only the agent measures the disk usage of pods."
	windows    = "Windows pods cannot run here."
	onLinux    = "As with a kubelet, Windows options are ignored on Linux."
)

// All returns the table of all fields of v1.Pod. A test walks the API types and fails for a field without a row.
// docs/fields.md is generated from the table.
func All() []Field {
	return slices.Concat(metadataFields(), placementFields(), podFields(), containerFields(), volumeFields())
}

// noted returns a row with a note.
func noted(path string, support Support, change ChangeClass, note string) Field {
	return Field{Path: path, Support: support, Change: change, Note: note}
}

// needs returns a row for a field that is honoured if the runtime or the node has something.
func needs(path string, change ChangeClass, what string) Field {
	return Field{Path: path, Support: Honoured, Change: change, Needs: what}
}

// withCluster returns the row with other values for pods of the API server.
func (f Field) withCluster(support Support, note string) Field {
	f.Cluster, f.ClusterNote = support, note
	return f
}

func metadataFields() []Field {
	const server = "Used only by an API server, which podctl does not have."
	return []Field{
		{Path: "apiVersion", Support: Honoured, Change: NoChange},
		{Path: "kind", Support: Honoured, Change: NoChange},
		{Path: "metadata.name", Support: Honoured, Change: NoChange},
		{
			Path: "metadata.generateName", Support: NoEffect, Change: NoChange,
			Note:    "Only an API server generates names; set metadata.name.",
			Cluster: Honoured, ClusterNote: "The API server uses it.",
		},
		{Path: "metadata.namespace", Support: Honoured, Change: NoChange},
		{Path: "metadata.uid", Support: Honoured, Change: NoChange},
		{Path: "metadata.labels", Support: Honoured, Change: Live},
		{Path: "metadata.annotations", Support: Honoured, Change: Live},
		noted("metadata", NoEffect, NoChange, server).withCluster(Honoured, "The API server uses it."),
		noted("status", NoEffect, NoChange, "podctl reports the status, and ignores it in a manifest."),
	}
}

func placementFields() []Field {
	placement := func(path string) Field {
		return Field{
			Path: path, Support: NoEffect, Change: NoChange,
			Note:    "Places pods on the nodes of a cluster; podctl has one machine.",
			Cluster: Honoured, ClusterNote: "The scheduler of the cluster uses it.",
		}
	}
	account := func(path string) Field {
		return Field{
			Path: path, Support: NoEffect, Change: NoChange,
			Note:    "Service accounts need an API server, which podctl does not have.",
			Cluster: Honoured, ClusterNote: "The API server adds the volume with the token.",
		}
	}
	return []Field{
		placement("spec.nodeName"),
		placement("spec.nodeSelector"),
		placement("spec.affinity"),
		placement("spec.tolerations"),
		placement("spec.topologySpreadConstraints"),
		placement("spec.schedulerName"),
		placement("spec.schedulingGates"),
		placement("spec.schedulingGroup"),
		placement("spec.preemptionPolicy"),
		account("spec.serviceAccountName"),
		account("spec.serviceAccount"),
		account("spec.automountServiceAccountToken"),
		noted("spec.enableServiceLinks", Honoured, NextStart,
			"Sets variables for the Services that exist when a container starts."),
		noted("spec.resourceClaims", Refused, NoChange, devices).withCluster(Refused, allocation),
	}
}

func podFields() []Field {
	return []Field{
		{Path: "spec.restartPolicy", Support: Honoured, Change: Live},
		{Path: "spec.terminationGracePeriodSeconds", Support: Honoured, Change: Live},
		{Path: "spec.activeDeadlineSeconds", Support: Honoured, Change: Live},
		{Path: "spec.imagePullSecrets", Support: Honoured, Change: NextStart},
		{Path: "spec.hostAliases", Support: Honoured, Change: NextStart},
		{Path: "spec.priorityClassName", Support: Honoured, Change: NextStart},
		{Path: "spec.priority", Support: Honoured, Change: NextStart},
		{Path: "spec.readinessGates", Support: Honoured, Change: Live},
		{Path: "spec.os", Support: Honoured, Change: NoChange},
		{Path: "spec.resources", Support: Honoured, Change: InPlace},
		{
			Path: DNSPolicy, Support: Honoured, Change: NewSandbox,
			Note:        "podctl has no cluster DNS: ClusterFirst and ClusterFirstWithHostNet fall back to Default.",
			Cluster:     Honoured,
			ClusterNote: "Without --cluster-dns, ClusterFirst and ClusterFirstWithHostNet fall back to Default.",
		},
		{Path: "spec.dnsConfig", Support: Honoured, Change: NewSandbox},
		{Path: "spec.hostname", Support: Honoured, Change: NewSandbox},
		{Path: "spec.hostnameOverride", Support: Honoured, Change: NewSandbox},
		{Path: "spec.subdomain", Support: Honoured, Change: NewSandbox},
		{Path: "spec.setHostnameAsFQDN", Support: Honoured, Change: NewSandbox},
		{Path: "spec.hostNetwork", Support: Honoured, Change: NewSandbox},
		{Path: "spec.hostPID", Support: Honoured, Change: NewSandbox},
		{Path: "spec.hostIPC", Support: Honoured, Change: NewSandbox},
		needs("spec.hostUsers", NewSandbox, "user namespaces: containerd 2.0 or newer"),
		{Path: "spec.shareProcessNamespace", Support: Honoured, Change: NewSandbox},
		needs("spec.runtimeClassName", NewSandbox, "a runtime handler of that name; in a cluster, a RuntimeClass"),
		{Path: "spec.overhead", Support: Honoured, Change: NewSandbox},
		{Path: "spec.securityContext", Support: Honoured, Change: NewSandbox},
		{Path: "spec.securityContext.runAsNonRoot", Support: Honoured, Change: Replace},
		{Path: "spec.securityContext.seccompProfile", Support: Honoured, Change: Replace},
		needs("spec.securityContext.appArmorProfile", Replace, "AppArmor in the kernel"),
		needs("spec.securityContext.seLinuxOptions", NewSandbox, "SELinux in the kernel"),
		{
			Path: "spec.securityContext.fsGroupChangePolicy", Support: NoEffect, Change: NoChange,
			Note:    "podctl always changes the whole volume, as the kubelet does for these kinds of volumes.",
			Cluster: NoEffect, ClusterNote: "podctl changes a local volume only if its directory has another group.",
		},
		noted("spec.securityContext.seLinuxChangePolicy", NoEffect, NoChange,
			"Only storage drivers of a cluster mount volumes with a label."),
		noted("spec.securityContext.windowsOptions", Refused, NoChange, windows).withCluster(NoEffect, onLinux),
	}
}

func containerFields() []Field {
	const published = "Only for regular containers: " +
		"as with a kubelet, ports of init containers and sidecars are not published."
	return []Field{
		{Path: "container.name", Support: Honoured, Change: Replace},
		{Path: "container.image", Support: Honoured, Change: Replace},
		{Path: "container.command", Support: Honoured, Change: Replace},
		{Path: "container.args", Support: Honoured, Change: Replace},
		{Path: "container.workingDir", Support: Honoured, Change: Replace},
		{Path: "container.ports", Support: Honoured, Change: Live},
		{Path: HostPort, Support: Honoured, Change: NewSandbox, Needs: "the CNI plugin portmap", Note: published},
		{Path: HostIP, Support: Honoured, Change: NewSandbox, Needs: "the CNI plugin portmap", Note: published},
		{Path: "container.env", Support: Honoured, Change: Replace},
		{Path: "container.envFrom", Support: Honoured, Change: Replace},
		{Path: "container.resources", Support: Honoured, Change: InPlace},
		// A limit is part of the hash, so an edit of it still replaces the container.
		{Path: "container.resources.limits.ephemeral-storage", Support: Honoured, Change: Replace, Note: measured},
		noted("container.resources.requests.ephemeral-storage", Honoured, NoChange,
			"Only the agent counts it, to admit pods and to choose which one to evict."),
		noted("container.resources.claims", Refused, NoChange, devices).withCluster(Refused, allocation),
		{Path: "container.resizePolicy", Support: Honoured, Change: Live},
		{Path: "container.restartPolicy", Support: Honoured, Change: Live},
		{Path: "container.restartPolicyRules", Support: Honoured, Change: Live},
		{Path: "container.volumeMounts", Support: Honoured, Change: Replace},
		needs("container.volumeMounts.recursiveReadOnly", Replace,
			"recursive read-only mounts: containerd 2.0 or newer"),
		{
			Path: "container.volumeDevices", Support: Refused, Change: NoChange,
			Note:    "Block devices come from claims of a cluster; use a hostPath volume of type BlockDevice.",
			Cluster: Refused, ClusterNote: "podctl does not support claims of block devices.",
		},
		{Path: "container.livenessProbe", Support: Honoured, Change: Live},
		{Path: "container.readinessProbe", Support: Honoured, Change: Live},
		{Path: "container.startupProbe", Support: Honoured, Change: Live},
		{Path: "container.lifecycle", Support: Honoured, Change: Live},
		{Path: "container.lifecycle.postStart", Support: Honoured, Change: NextStart},
		needs("container.lifecycle.stopSignal", Replace, "stop signals: containerd 2.1 or newer"),
		{Path: "container.terminationMessagePath", Support: Honoured, Change: Replace},
		{Path: "container.terminationMessagePolicy", Support: Honoured, Change: Replace},
		{Path: "container.imagePullPolicy", Support: Honoured, Change: NextStart},
		{Path: "container.securityContext", Support: Honoured, Change: Replace},
		noted("container.securityContext.windowsOptions", Refused, NoChange, windows).withCluster(NoEffect, onLinux),
		{Path: "container.stdin", Support: Honoured, Change: Replace},
		{Path: "container.stdinOnce", Support: Honoured, Change: Replace},
		{Path: "container.tty", Support: Honoured, Change: Replace},
		{Path: "container.targetContainerName", Support: Honoured, Change: NoChange},
	}
}

func volumeFields() []Field {
	const token = "Only an API server issues it, and podctl has none."
	return []Field{
		{
			Path: "volume", Support: Refused, Change: NoChange,
			Note: "This kind of volume is not supported; podctl has emptyDir, hostPath, configMap, secret, " +
				"downwardAPI, projected, image and persistentVolumeClaim.",
			Cluster: Refused,
			ClusterNote: "This kind of volume is not supported; for pods of a cluster podctl has emptyDir, hostPath, " +
				"configMap, secret, downwardAPI, projected, image, persistentVolumeClaim and ephemeral.",
		},
		{Path: "volume.name", Support: Honoured, Change: Replace},
		{Path: "volume.emptyDir", Support: Honoured, Change: Replace},
		{Path: SizeLimit, Support: Honoured, Change: NewPod, Note: "On disk an edit is live. " + measured},
		{Path: "volume.hostPath", Support: Honoured, Change: Replace},
		// Like a kubelet, podctl checks the type before the mount; the mount itself is the same.
		{Path: "volume.hostPath.type", Support: Honoured, Change: NextStart},
		{Path: "volume.configMap", Support: Honoured, Change: Live},
		{Path: "volume.secret", Support: Honoured, Change: Live},
		{Path: "volume.downwardAPI", Support: Honoured, Change: Live},
		{Path: "volume.projected", Support: Honoured, Change: Live},
		noted("volume.projected.sources.serviceAccountToken", Refused, NoChange, token).
			withCluster(Honoured, "podctl requests the token, and replaces it before it expires."),
		noted("volume.projected.sources.clusterTrustBundle", Refused, NoChange, token).
			withCluster(Honoured, "Needs an API server with ClusterTrustBundles of the version v1beta1."),
		noted("volume.projected.sources.podCertificate", Refused, NoChange, token).
			withCluster(Refused, "podctl does not request certificates for pods."),
		{
			Path: "volume.persistentVolumeClaim", Support: Honoured, Change: Replace,
			Cluster: Honoured, ClusterNote: claims,
		},
		{
			Path: "volume.ephemeral", Support: Refused, Change: NoChange,
			Note:    "Only a cluster creates claims for a pod; use an emptyDir or a persistentVolumeClaim.",
			Cluster: Honoured, ClusterNote: claims,
		},
		{Path: "volume.image", Support: Honoured, Change: Replace, Needs: "image volumes: containerd 2.1 or newer"},
		{Path: "volume.image.pullPolicy", Support: Honoured, Change: NextStart},
	}
}
