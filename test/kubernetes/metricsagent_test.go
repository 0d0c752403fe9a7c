package kubernetes

// agentDifferences are the declared differences of /metrics.
func agentDifferences() (rows []metricDifference) {
	for reason, items := range map[string][]string{
		"the runtime of Go in more detail; podctl has the metrics of its standard collector": {
			"*go_cgo_*", "*go_cpu_classes_*", "*go_gc_*", "*go_godebug_*", "*go_memory_classes_*", "*go_sched_*", "*go_sync_*",
		},
		"parts of an API server that a kubelet links and does not use": {
			"*aggregator_discovery_*", "*apiserver_audit_*", "*apiserver_envelope_*", "*apiserver_storage_*",
			"*apiserver_validation_*", "*apiserver_webhooks_*",
		},
		"counts of the library of metrics itself": {
			"*cardinality_enforcement_*", "*disabled_metrics_total*", "*hidden_metrics_total*", "*registered_metrics_total*",
		},
		"podctl has no feature gates": {"*kubernetes_feature_enabled*"},
		"podctl has no resource managers for processors, memory and topology": {
			"*kubelet_cpu_manager_*", "*kubelet_memory_manager_*", "*kubelet_topology_manager_*",
		},
		"podctl rejects resource claims":                                     {"*dra_*"},
		"caches of tokens are those of podctl; the delegated requests count": {"*authentication_token_cache_*"},
		"the remaining life of certificates of clients, which the API server knows": {
			"*apiserver_client_certificate_expiration_*",
		},
		"podctl has no queues with names": {"*workqueue_*"},
		"the client of podctl has no rate limit and no plugins": {
			"*rest_client_exec_*", "*rest_client_rate_limiter_*", "*rest_client_transport_*",
		},
		"sizes of requests are not counted": {"*rest_client_request_size_*", "*rest_client_response_size_*"},
		"the image manager of a kubelet": {
			"*kubelet_image_manager_*", "*kubelet_imagemanager_*", "*kubelet_image_volume_*",
		},
		"the reconciler of volumes of a kubelet; podctl counts each operation": {
			"*force_cleaned_*", "*kubelet_orphan_pod_*", "*reconstruct_volume_*", "*volume_manager_*", "*volume_operation_*",
			"*kubelet_volume_metric_collection_*",
		},
		"the labels of a build by make": {"kubernetes_build_info{*"},
		"details of the loop of a kubelet": {
			"*kubelet_cgroup_manager_*", "*kubelet_evented_pleg_*", "*kubelet_orphaned_runtime_*",
			"*kubelet_pleg_discard_events*", "*kubelet_pleg_pod_relist_*", "*kubelet_pleg_relist_interval_*",
			"*kubelet_pod_worker_start_*", "*kubelet_run_podsandbox_*", "*kubelet_working_pods*", "*kubelet_restarted_pods*",
			"*kubelet_cgroup_version*", "*kubelet_lifecycle_handler_http_fallbacks*",
			"*kubelet_sleep_action_*", "*kubelet_pod_in_progress_resizes*", "*kubelet_terminated_containers*",
			"*kubelet_managed_ephemeral_*", "*kubelet_graceful_shutdown_*",
		},
		"other measures of the start of pods; podctl has kubelet_pod_start_duration_seconds": {
			"*kubelet_first_network_pod_*", "*kubelet_pod_start_sli_*", "*kubelet_pod_start_total_*",
		},
		"/stats/summary has the logs of containers": {"*kubelet_container_log_filesystem_*"},
	} {
		for _, item := range items {
			rows = append(rows, metricDifference{"/metrics", "kubelet", item, 0, reason})
		}
	}
	for _, item := range []string{"*kube_pod_*", "*podctl_*", "kubernetes_build_info{*"} {
		rows = append(rows, metricDifference{"/metrics", "podctl", item, 0, "metrics of podctl's agent"})
	}
	return rows
}
