package model

// LastRun is what ran when podctl made its last pass. What is missing of it since
// then was stopped or removed by somebody else.
type LastRun struct {
	Sandbox string `json:"sandbox,omitempty"`
	// Containers holds ids by name.
	Containers map[string]string `json:"containers,omitempty"`
	// Reset names the containers whose records a restart of all containers has taken
	// away, and which were not started since.
	Reset []string `json:"reset,omitempty"`
	// Stopped are sandboxes that podctl has stopped, and which are still there.
	Stopped []string `json:"stopped,omitempty"`
}
