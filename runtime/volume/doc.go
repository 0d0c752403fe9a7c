// Package volume creates a pod's volumes on disk in the kubelet's layout and with the kubelet's modes. It also updates
// their content and removes them.
//
// The input is a Context: the pod with its objects, and its place on disk. A mounter prepares one volume. A collector
// computes the wanted content from the manifest alone, and a writer writes it to the disk. The planner compares digests
// of wanted and actual content (Wanted, States) to decide whether a volume has to be prepared or updated. All paths
// come from runtime/state.
//
// The package does not trust anything that a container can write. It opens paths inside a volume without leaving it,
// and then uses the open handle, not the name.
package volume
