package selection

// Purpose is the use that a command makes of a selection. It determines which objects are found and which notes are
// printed.
type Purpose int

// The purposes. From Reach on, a command must reach every pod: unreadable checkpoints are returned as errors instead of
// notes.
const (
	// Work needs pods that podctl applied.
	Work Purpose = iota
	// Show inspects pods. Names may also be those of pods that podctl did not apply.
	Show
	// List is Show for a command that observes all pods anyway. Status fields then select nothing, and the command
	// filters the observed pods with ByStatus.
	List
	Reach
	// DeleteKinds also needs the ConfigMaps, Secrets, claims and Services of manifests. With a snapshot they are not
	// found, because pods use the objects of their own manifests.
	DeleteKinds
	// Delete also needs workloads.
	Delete
	// Apply also needs the objects that a selected pod names, even if the selector does not match them. It prints notes
	// for fields without effect.
	Apply
)
