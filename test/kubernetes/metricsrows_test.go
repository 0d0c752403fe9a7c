package kubernetes

// metricDifferences are the declared differences between the metrics of a kubelet and of podctl agent.
func metricDifferences() (rows []metricDifference) {
	for _, group := range []struct {
		path, side string
		version    int
		reason     string
		items      []string
	}{
		{"/metrics/cadvisor", "kubelet", 0, "the runtime does not report the image of a sandbox", []string{
			"the image of sandboxes",
		}},
		{"/metrics/cadvisor", "kubelet", 0, "cAdvisor always reports zero, because a kubelet does not enable its reader", []string{
			"*container_cpu_load_average_10s*", "*container_cpu_load_d_average_10s*", "*container_tasks_state*",
		}},
		{"/metrics/cadvisor", "kubelet", 0, "the runtime has no health checks of its own", []string{"*container_health_state*"}},
		{"/metrics/cadvisor", "kubelet", 0, "reading the files of each process costs more than all other metrics", []string{
			"*container_file_descriptors*", "*container_sockets*", "*container_ulimits_soft*",
		}},
		{"/metrics/cadvisor", "kubelet", 0, "a property of cAdvisor", []string{"*cadvisor_version_info*"}},
		{"/metrics/cadvisor", "kubelet", 0, "the mounts of the machine, not of pods; node_exporter has them", []string{
			"*container_fs_inodes_free*", "*container_fs_inodes_total*", "*container_fs_io_current*",
			"*container_fs_io_time_seconds_total*", "*container_fs_io_time_weighted_seconds_total*",
			"*container_fs_limit_bytes*", "*container_fs_read_seconds_total*", "*container_fs_reads_merged_total*",
			"*container_fs_reads_total*", "*container_fs_sector_reads_total*", "*container_fs_sector_writes_total*",
			"*container_fs_usage_bytes*", "*container_fs_write_seconds_total*", "*container_fs_writes_merged_total*",
			"*container_fs_writes_total*",
		}},
		{"/metrics/cadvisor", "kubelet", 0, "node_exporter has the hardware of the machine", []string{
			"*machine_cpu_books*", "*machine_cpu_drawers*", "*machine_cpu_physical_cores*", "*machine_cpu_sockets*",
			"*machine_nvm_*",
		}},
		{"/stats/summary", "kubelet", 1, "version 1 of cgroups has no pressure; a kubelet shows zeros", []string{
			"*.psi.*", "*.io.time",
		}},
	} {
		for _, item := range group.items {
			rows = append(rows, metricDifference{group.path, group.side, item, group.version, group.reason})
		}
	}
	return append(rows, agentDifferences()...)
}
