package node

import (
	"context"
	"errors"
	"fmt"

	"github.com/podctl/podctl/runtime/agent/daemon"
	"github.com/podctl/podctl/runtime/cluster"
	"github.com/podctl/podctl/runtime/cluster/leave"
	"github.com/podctl/podctl/runtime/cluster/membership"
	"github.com/podctl/podctl/runtime/kubeletapi"
)

// Leave takes the machine out of its cluster: it drains the Node, deletes it, makes the agent run without the cluster,
// and deletes the lease, which the agent no longer renews then.
func Leave(ctx context.Context, s *daemon.Leaving) error {
	record, err := membership.Read(s.StateDir)
	if err != nil {
		return err
	}
	if record == nil {
		return errors.New("this machine is not registered as a node")
	}
	client, err := cluster.Connect(cluster.Settings{
		Kubeconfig: s.Kubeconfig, Node: record.Name, Dir: kubeletapi.CertificateDir(s.StateDir),
		UserAgent: "podctl-node/" + s.Version, Now: s.Now, Log: s.Log,
	})
	if err != nil {
		return err
	}
	l := &leave.Leaver{
		Client: client.Client, Node: record.Name, Note: s.Note,
		Options: leave.Options{Grace: s.Grace, Force: s.Force, DeleteEmptyDir: s.DeleteEmptyDir},
	}
	if err = l.Drain(ctx); err != nil {
		return err
	}
	if err = l.RemoveNode(ctx); err != nil {
		if errors.Is(err, leave.ErrForbidden) {
			return &daemon.NotRemovedError{Err: err}
		}
		return err
	}
	if err = record.Leave(s.StateDir); err != nil {
		return err
	}
	if err = s.EndMembership(ctx); err != nil {
		return fmt.Errorf("the agent still uses the cluster: %w: restart it", err)
	}
	if err = l.RemoveLease(ctx); err != nil {
		return err
	}
	s.Note("This machine has left its cluster. " +
		"Remove kubeconfig and all other settings of the node from the configuration of podctl.")
	return nil
}
