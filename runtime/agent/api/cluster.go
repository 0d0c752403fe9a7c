package api

import (
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Cluster is the agent as a node of a cluster.
type Cluster struct {
	APIServer Server      `json:"apiServer"`
	Node      ClusterNode `json:"node"`
	Server    NodeServer  `json:"server"`
	// Statuses are those of the pods, and Events those of the pods and the Node.
	Statuses Requests `json:"statuses"`
	Events   Requests `json:"events"`
	// Certificates are those of this machine, for requests to the API server and for the node's server.
	Certificates []Certificate `json:"certificates,omitempty"`
}

// Server is whether the API server responds.
type Server struct {
	Address  string `json:"address"`
	Responds bool   `json:"responds"`
	// Since is when this state began. It is zero before the first result of a request.
	Since time.Time `json:"since,omitzero"`
	Error string    `json:"error,omitempty"`
	// Refusal is why the node does not use the API server although it responds: it is that of another cluster, or it
	// does not send the pods of the node.
	Refusal string `json:"refusal,omitempty"`
	// LastList is when the pods of the node were listed last. The watch reports changes after that.
	LastList time.Time `json:"lastList,omitzero"`
}

// ClusterNode is the Node object and its heartbeats.
type ClusterNode struct {
	Name string `json:"name"`
	// UID is empty if the API server has no such Node, as far as the agent knows.
	UID types.UID `json:"uid,omitempty"`
	// Unschedulable reports that new pods are not scheduled to the node.
	Unschedulable bool               `json:"unschedulable,omitempty"`
	Conditions    []v1.NodeCondition `json:"conditions,omitempty"`
	// LeaseRenewed and StatusSent are the times of the last successful requests. They are zero before the first.
	LeaseRenewed time.Time `json:"leaseRenewed,omitzero"`
	StatusSent   time.Time `json:"statusSent,omitzero"`
}

// NodeServer is the node's server, and who may use it.
type NodeServer struct {
	// Address is where it listens, with the port. ReadOnly is where it listens without access control, if it does.
	Address  string `json:"address"`
	ReadOnly string `json:"readOnly,omitempty"`
	// Authorization is Webhook or AlwaysAllow.
	Authorization string `json:"authorization"`
	// ClientCAFile is the file with the certificate authorities of clients. It may be empty.
	ClientCAFile string `json:"clientCAFile,omitempty"`
	// Anonymous reports that requests without credentials are accepted.
	Anonymous bool `json:"anonymous,omitempty"`
}

// Requests are requests of one kind to the API server.
type Requests struct {
	// Pending is the number of objects for which a request is due or in flight.
	Pending int `json:"pending"`
	// LastSent is the time of the last successful request. It is zero before the first.
	LastSent time.Time `json:"lastSent,omitzero"`
	// Error is the last failure of a pending request.
	Error string `json:"error,omitempty"`
}

// Certificate is a certificate of the machine.
type Certificate struct {
	// Use is client or serving.
	Use     string    `json:"use"`
	Subject string    `json:"subject,omitempty"`
	Expires time.Time `json:"expires,omitzero"`
	// Rotates is set if podctl replaces the certificate with one of the API server before it expires.
	Rotates bool `json:"rotates,omitempty"`
	// Request is the name of the CertificateSigningRequest for the next certificate, and Requested when it was sent.
	// Approved requests wait for the signer.
	Request   string    `json:"request,omitempty"`
	Requested time.Time `json:"requested,omitzero"`
	Approved  bool      `json:"approved,omitempty"`
	// Error is the reason why the certificate cannot be read, or why there is no new one.
	Error string `json:"error,omitempty"`
}
