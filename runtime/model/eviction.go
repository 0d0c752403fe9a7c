package model

import "time"

// Eviction explains why a pod was ended to free a scarce resource of the machine, because it exceeded its own limits of
// disk space, for a critical pod, or because the machine shuts down. An evicted pod uses nothing on the node and leaves
// only its record.
type Eviction struct {
	// Message is the kubelet's.
	Message string `json:"message"`
	// Annotations are those of the kubelet's event.
	Annotations map[string]string `json:"annotations,omitempty"`
	// Signal is the kubelet's eviction signal of the scarce resource, its name of the exceeded limit, or the resource
	// that a critical pod needs.
	Signal string `json:"signal"`
	// OwnLimit is set if the pod exceeded its own limit. Then no resource of the machine is scarce.
	OwnLimit bool `json:"ownLimit,omitempty"`
	// Preempted is set if a critical pod needs the resources. The pod then has its own grace period to stop.
	Preempted bool `json:"preempted,omitempty"`
	// Shutdown is set if the machine shuts down. Then Signal is empty, and no resource is scarce.
	Shutdown bool `json:"shutdown,omitempty"`
	// GracePeriodSeconds is how many seconds the pod has to stop, at least one.
	GracePeriodSeconds int64 `json:"gracePeriodSeconds,omitempty"`
	// At is when the pod was evicted.
	At time.Time `json:"at"`
	// Done is set once only the record of the pod is left.
	Done bool `json:"done,omitempty"`
}

// Preempt returns the eviction of a pod that is preempted (kubelet: evictPodsToFreeRequests).
func (p *Preemption) Preempt(at time.Time) *Eviction {
	return &Eviction{
		Message: "Preempted in order to admit critical pod", Signal: string(p.Resource), Preempted: true, At: at.UTC(),
	}
}

// ShutdownEviction is the eviction of a pod because the machine shuts down (kubelet: nodeshutdown.podManager).
func ShutdownEviction(at time.Time, grace int64) *Eviction {
	return &Eviction{
		Message: "Pod was terminated in response to imminent node shutdown.", Shutdown: true, GracePeriodSeconds: grace,
		At: at.UTC(),
	}
}

// Reason returns the reason in the status of the pod (kubelet: nodeShutdownReason for a shutdown).
func (e *Eviction) Reason() Reason {
	switch {
	case e.Preempted:
		return Preempting
	case e.Shutdown:
		return Terminated
	}
	return Evicted
}

// ShutdownRejection is the rejection of a pod that arrives while the machine shuts down (kubelet:
// nodeshutdown.managerImpl.Admit).
func ShutdownRejection() *Rejection {
	return &Rejection{Reason: NodeShutdown, Message: "Pod was rejected as the node is shutting down."}
}

// AfterEviction returns the memory of an evicted pod that runs again: that of a new pod.
func (m *Memory) AfterEviction() Memory { return Memory{Generation: m.Generation} }

// EndEviction clears the parts of the memory that do not apply to a removed pod.
func (m *Memory) EndEviction() {
	done := *m.Eviction
	done.Done = true
	m.Eviction = &done
	m.StartErrors, m.LastRun, m.PendingRestarts, m.Probes, m.Adopted, m.Actuated = nil, nil, nil, nil, nil, nil
	m.Backoffs = map[string]Backoff{}
}
