package selection

// Purpose is what a command does with what a selection finds. It decides what else is found, and what is printed.
type Purpose int

// The purposes. Those from Reach on have to reach every pod: checkpoints that cannot be read are returned instead
// of noted.
const (
	// Work needs pods that podctl applied.
	Work Purpose = iota
	// Show shows pods, or looks into them: pods that podctl did not apply can be named, too.
	Show
	// List is Show for a command that observes all pods anyway: fields of the status let every pod through, and the
	// command narrows what it has observed with ByStatus.
	List
	Reach
	// DeleteKinds also needs the ConfigMaps, Secrets, claims and Services of manifests. With a snapshot they are not
	// found: pods take what their manifests bring.
	DeleteKinds
	// Delete also needs workloads.
	Delete
	// Apply also needs objects that a selector leaves out if a pod that it lets through names them. Fields of
	// manifests without effect are noted.
	Apply
)
