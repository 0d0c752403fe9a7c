package guard

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/podctl/podctl/runtime/cluster"
	"github.com/podctl/podctl/runtime/cluster/apiclient"
	"github.com/podctl/podctl/runtime/cluster/apierror"
	"github.com/podctl/podctl/runtime/cluster/membership"
)

// Settings configure a Guard. Every field is required.
type Settings struct {
	// Client is the REST client of core/v1, Health the state of its connection.
	Client rest.Interface
	Health func() cluster.State
	// Node is the name of the Node, StateDir the directory of the record.
	Node, StateDir string
	Log            *slog.Logger
}

// Guard compares the API server with the record. It is safe for concurrent use.
type Guard struct {
	Settings

	// mu guards the record and the following fields. confirmed is when the connection began on which the last check
	// succeeded. other is set if the last check has found another cluster, waiting if it has found an API server that
	// is not ready.
	mu             sync.Mutex
	confirmed      time.Time
	other, waiting bool
}

// New returns a guard. It sends nothing.
func New(s Settings) *Guard { return &Guard{Settings: s} }

// otherError reports that another cluster answers.
type otherError struct {
	// Node is the name of the Node.
	Node string
}

// Error returns the text of the error.
func (e *otherError) Error() string {
	return fmt.Sprintf("this is another cluster: its Node %s and its Service default/kubernetes have other uids than "+
		"those that this machine has seen. No pod is started or ended for it: correct the server in the kubeconfig, "+
		"or run `podctl agent join --new-cluster` to use this cluster", e.Node)
}

// Other returns an error if the last check has found another cluster.
func (g *Guard) Other() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.other {
		return &otherError{Node: g.Node}
	}
	return nil
}

// Confirm is Check, but makes no request while the connection on which the last check succeeded lasts.
func (g *Guard) Confirm(ctx context.Context) error {
	g.mu.Lock()
	now := g.Health()
	confirmed := !g.other && now.Responds && now.Since.Equal(g.confirmed)
	g.mu.Unlock()
	if confirmed {
		return nil
	}
	return g.Check(ctx)
}

// Check reads the identity of the cluster. It returns an error for another one, and if the API server does not
// tell.
func (g *Guard) Check(ctx context.Context) error {
	r, err := membership.Read(g.StateDir)
	if err == nil && (r == nil || r.UID == "") {
		return g.judge(membership.Seen{}) // Any cluster is right.
	}
	if err != nil {
		return err
	}
	seen, err := g.look(ctx)
	if err != nil {
		return err
	}
	return g.judge(seen)
}

// judge compares the uids that an API server has with the record, and completes the record.
func (g *Guard) judge(seen membership.Seen) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	r, err := membership.Read(g.StateDir)
	if err != nil {
		return err
	}
	verdict := membership.Judge(r, seen)
	g.other, g.confirmed = verdict == membership.Other, time.Time{}
	waited := g.waiting
	g.waiting = verdict == membership.Unknown
	switch verdict {
	case membership.Other:
		return &otherError{Node: g.Node}
	case membership.Unknown:
		if !waited {
			g.Log.Info("the API server starts: podctl waits until it has created the Service default/kubernetes")
		}
		return &apierror.LoggedError{Err: errNotReady}
	case membership.Same:
	}
	if now := g.Health(); now.Responds {
		g.confirmed = now.Since
	}
	if r != nil && r.UID == seen.Node && seen.Service != "" && seen.Service != r.Service {
		r.Service = seen.Service
		// Without this uid, another cluster cannot be recognized, but pods of this one must be deleted also if the
		// disk is full.
		if err = r.Write(g.StateDir); err != nil {
			g.Log.Warn("the identity of the cluster is not recorded", "error", err.Error())
		}
	}
	return nil
}

var errNotReady = apierrors.NewServiceUnavailable("the API server has not created the Service default/kubernetes yet")

// look reads the uids of the objects that identify a cluster.
func (g *Guard) look(ctx context.Context) (seen membership.Seen, err error) {
	if seen.Node, err = get[v1.Node](ctx, g.Client.Get().Resource("nodes").Name(g.Node)); err != nil {
		return seen, err
	}
	service := g.Client.Get().Namespace(metav1.NamespaceDefault).Resource("services").Name("kubernetes")
	seen.Service, err = get[v1.Service](ctx, service)
	if apierrors.IsForbidden(err) {
		seen.Hidden, err = true, nil
	}
	return seen, err
}

// named is an object of the API with a uid.
type named[T any] interface {
	apiclient.Object[T]
	metav1.Object
}

// get returns the uid of an object. It is empty if the object does not exist.
func get[T any, P named[T]](ctx context.Context, r *rest.Request) (types.UID, error) {
	found, err := apiclient.Do[T, P](ctx, r.MaxRetries(0))
	if apierror.IsAbsent(err) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	uid := P(found).GetUID()
	if uid == "" {
		return "", fmt.Errorf("the API server answers with %T without a uid", found)
	}
	return uid, nil
}

// IsNew reports whether this machine has not registered the node yet. It is false if that cannot be known.
func (g *Guard) IsNew() bool {
	known, err := membership.Read(g.StateDir)
	return err == nil && (known == nil || known.UID == "")
}

// Registered records a registration, and returns the record before; nil if there was none.
func (g *Guard) Registered(uid types.UID, bootID string) (before *membership.Record, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if before, err = membership.Read(g.StateDir); err != nil {
		return nil, err
	}
	now := membership.Record{Name: g.Node, UID: uid, BootID: bootID}
	if before != nil {
		now.Service = before.Service
	}
	if before != nil && *before == now {
		return before, nil
	}
	return before, now.Write(g.StateDir)
}
