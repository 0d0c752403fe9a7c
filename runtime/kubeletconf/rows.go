package kubeletconf

// enforceFlag is the flag that limits all pods together.
const enforceFlag = "enforce-node-allocatable"

// Notes of several rows.
const (
	noProfiling = "podctl serves no profiles of itself."
	noRates     = "podctl does not limit the rate of its requests to the API server; it needs fewer than a kubelet."
	noPullRates = "podctl does not limit the rate of pulls; --max-parallel-pulls limits their number."
	noCores     = "podctl assigns no processors or memory nodes to containers; all containers share them."
	noEnforced  = "podctl limits all pods together, but not the system and the kubelet."
	noLogging   = "podctl has its own log; --verbose and --log-format change it."
	noIPTables  = "It has no effect in a kubelet with a CRI runtime either."
	noIntervals = "The interval of podctl is fixed."
)

// sourceRows are the settings for manifests and logs.
func sourceRows() []Row {
	return []Row{
		honoured("staticPodPath", "pod-manifest-path", Text, "sources"),
		honoured("staticPodURL", "manifest-url", Text, "sources").hidden(),
		refused("staticPodURLHeader", "manifest-url-header", Tree,
			"podctl sends no such headers for manifests.").hidden(),
		honoured("httpCheckFrequency", "http-check-frequency", Duration, "url-interval").with("20s"),
		without("fileCheckFrequency", "file-check-frequency", Duration, "The kernel notifies podctl of changed files."),
		without("syncFrequency", "sync-frequency", Duration,
			"podctl syncs a pod when something has changed or is due."),
		honoured("podLogsDir", "", Text, "log-root").with("/var/log/pods", "/var/log/pods/"),
		honoured("containerLogMaxSize", "container-log-max-size", Text, "container-log-max-size").with("10Mi"),
		honoured("containerLogMaxFiles", "container-log-max-files", Number, "container-log-max-files").with("5"),
		without("containerLogMaxWorkers", "", Number, "podctl rotates one log after the other.", "1"),
		without("containerLogMonitorInterval", "", Duration, "podctl checks logs every 10 seconds.", "10s"),
		refused("runOnce", "runonce", Boolean, "Use `podctl apply --wait` in place of an agent.", "false"),
	}
}

// serverRows are the settings of the node's server and of podctl's own log.
func serverRows() []Row {
	return []Row{
		without("enableServer", "enable-server", Boolean, "The server of the node always runs.", "true"),
		honoured("address", "address", Text, "address").with("0.0.0.0", "::"),
		honoured("port", "port", Number, "port").with("10250", "0"),
		honoured("readOnlyPort", "read-only-port", Number, "read-only-port").with("0"),
		honoured("tlsCertFile", "tls-cert-file", Text, "tls-cert-file"),
		honoured("tlsPrivateKeyFile", "tls-private-key-file", Text, "tls-private-key-file"),
		honoured("tlsCipherSuites", "tls-cipher-suites", List, "tls-cipher-suites"),
		honoured("tlsMinVersion", "tls-min-version", Text, "tls-min-version"),
		without("tlsCurvePreferences", "", Tree, "The server of the node uses the curves of Go."),
		honoured("serverTLSBootstrap",
			"rotate-server-certificates", Boolean, "rotate-server-certificates").with("false"),
		honoured("authentication.x509.clientCAFile", "client-ca-file", Text, "client-ca-file"),
		without("authentication.webhook.enabled", "authentication-token-webhook", Boolean,
			"The server of the node always accepts tokens of the API server.", "true"),
		honoured("authentication.webhook.cacheTTL", "authentication-token-webhook-cache-ttl", Duration,
			"authentication-token-webhook-cache-ttl").with("2m0s"),
		honoured("authentication.anonymous.enabled", "anonymous-auth", Boolean, "anonymous-auth").with("false"),
		honoured("authorization.mode", "authorization-mode", Text, "authorization-mode").with("Webhook"),
		honoured("authorization.webhook.cacheAuthorizedTTL", "authorization-webhook-cache-authorized-ttl", Duration,
			"authorization-webhook-cache-authorized-ttl").with("5m0s"),
		honoured("authorization.webhook.cacheUnauthorizedTTL", "authorization-webhook-cache-unauthorized-ttl", Duration,
			"authorization-webhook-cache-unauthorized-ttl").with("30s"),
		without("enableDebuggingHandlers", "enable-debugging-handlers", Boolean,
			"Logs, commands and ports of pods are always served.", "true"),
		without("enableContentionProfiling", "contention-profiling", Boolean, noProfiling, "false"),
		without("enableProfilingHandler", "", Boolean, noProfiling, "false"),
		without("enableDebugFlagsHandler", "", Boolean, "The server cannot change the verbosity of the log.", "false"),
		honoured("enableSystemLogHandler", "", Boolean, "enable-system-log-handler").with("false").otherwise("true"),
		without("enableSystemLogQuery", "", Boolean, "The server has no queries of system logs.", "false"),
		without("healthzPort", "healthz-port", Number, "Use --listen ADDRESS:PORT, which serves /healthz.", "0"),
		without("healthzBindAddress", "healthz-bind-address", Text,
			"Use --listen ADDRESS:PORT, which serves /healthz."),
		without("streamingConnectionIdleTimeout", "streaming-connection-idle-timeout", Duration,
			"Streams without data end after 4 hours.", "4h0m0s"),
		honoured("logging.format", "logging-format", Text, "log-format").with("text"),
		without("logging.flushFrequency", "log-flush-frequency", Tree, noLogging, "0", "5s", "5000000000"),
		without("logging.verbosity", "v", Number, noLogging, "0"),
		without("logging.vmodule", "", Tree, noLogging),
		without("logging.options.text.splitStream", "log-text-split-stream", Boolean, noLogging, "false"),
		without("logging.options.text.infoBufferSize", "log-text-info-buffer-size", Tree, noLogging, "0"),
		without("logging.options.json.splitStream", "", Boolean, noLogging, "false"),
		without("logging.options.json.infoBufferSize", "", Tree, noLogging, "0"),
		without("tracing", "", Tree, "podctl exports no traces to a collector."),
		without("showHiddenMetricsForVersion", "", Text, "podctl has no hidden metrics."),
	}
}

// clusterRows are the settings for the API server.
func clusterRows() []Row {
	return []Row{
		honoured("clusterDomain", "cluster-domain", Text, "cluster-domain"),
		honoured("clusterDNS", "cluster-dns", List, "cluster-dns"),
		honoured("rotateCertificates", "rotate-certificates", Boolean, "rotate-certificates").with("false"),
		honoured("registerWithTaints", "register-with-taints", Taints, "register-with-taints"),
		refused("registerNode", "register-node", Boolean, "podctl registers its Node.", "true"),
		honoured("providerID", "provider-id", Text, "provider-id"),
		without("nodeStatusUpdateFrequency", "node-status-update-frequency", Duration, noIntervals, "10s"),
		without("nodeStatusReportFrequency", "", Duration, noIntervals, "5m0s", "10s"),
		without("nodeLeaseDurationSeconds", "", Number, "The lease is valid for 40 seconds.", "40", "0"),
		without("nodeStatusMaxImages", "node-status-max-images", Number, "The Node lists the 50 largest images.", "50"),
		without("eventRecordQPS", "event-qps", Number, "podctl sends up to 50 events each second.", "50"),
		without("eventBurst", "event-burst", Number, "podctl sends up to 100 events at once.", "100", "0"),
		without("contentType", "kube-api-content-type", Text, "podctl selects the encoding.",
			"application/vnd.kubernetes.protobuf"),
		without("kubeAPIQPS", "kube-api-qps", Number, noRates, "50"),
		without("kubeAPIBurst", "kube-api-burst", Number, noRates, "100", "0"),
		without("configMapAndSecretChangeDetectionStrategy", "", Text, "podctl watches each object.", "Watch"),
		without("enableControllerAttachDetach", "enable-controller-attach-detach", Boolean,
			"podctl attaches no volumes.", "true"),
		without("volumePluginDir", "volume-plugin-dir", Text, "podctl has no FlexVolumes.",
			"/usr/libexec/kubernetes/kubelet-plugins/volume/exec/"),
		without("volumeStatsAggPeriod", "volume-stats-agg-period", Duration,
			"podctl measures volumes when a client asks, at most once a minute.", "1m0s"),
		without("podCIDR", "pod-cidr", Text, "The network configuration of the runtime decides."),
		without("featureGates", "feature-gates", Pairs,
			"podctl has no feature gates; docs/fields.md lists what it supports."),
	}
}
