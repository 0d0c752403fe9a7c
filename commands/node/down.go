package node

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podctl/podctl/commands/config"
	"github.com/podctl/podctl/commands/flags"
	"github.com/podctl/podctl/commands/lifecycle"
	"github.com/podctl/podctl/commands/selection"
	"github.com/podctl/podctl/commands/session"
	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/cgroup"
	"github.com/podctl/podctl/runtime/filelock"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/node"
	"github.com/podctl/podctl/runtime/proxy"
	"github.com/podctl/podctl/runtime/state"
)

// downTimeout is the default timeout for taking a node down.
const downTimeout = 15 * time.Minute

func newDown(sess *session.Session) *cobra.Command {
	var containerd string
	var all bool
	cmd := &cobra.Command{
		Use:   "down [flags]",
		Short: "Remove the private containerd and its pods",
		Long: "Delete the pods of the private containerd, stop it, and remove its mounts, network and files. " +
			"Without --timeout, the\ncommand gives up after 15 minutes.\n" +
			"\n" +
			"--purge removes everything of podctl from the machine: " +
			"also its pods on other runtimes, workloads and Services,\nnftables tables, route_localnet, cgroups, " +
			"archived logs, the state directory and the DATA OF CLAIMS. " +
			"Stop the agent\nfirst. " +
			"Files that podctl did not create stay, for example seccomp profiles." +
			flags.ExitCodes("0 removed", "1 error"),
		Example: "  podctl node down\n  podctl node down --purge",
		Args:    flags.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, cancel := within(sess, cmd, downTimeout)
			defer cancel()
			o := options(sess, containerd)
			if all {
				return purge(ctx, sess, o)
			}
			if err := deletePods(ctx, sess, o); err != nil {
				sess.IO.Note("note: %v; the pods are removed with the node", err)
			}
			if err := node.Down(ctx, o); err != nil {
				return err
			}
			sess.IO.Print("node is down")
			return nil
		},
	}
	cmd.Flags().StringVar(&containerd, "containerd", "", "Path of containerd, if the clean-up has to start it")
	cmd.Flags().BoolVar(&all, "purge", false,
		"Also remove everything else of podctl: all pods, the data of claims, logs, rules and files")
	return cmd
}

// deletePods deletes the pods that podctl applied to the node, so that their hooks run and their files in the state
// directory are removed. It starts a node that died.
func deletePods(ctx context.Context, sess *session.Session, o node.Options) error {
	socket := node.Socket(o.Dir)
	applied, unreadable, err := state.Applied(sess.Flags.Layout())
	if err != nil {
		return err
	}
	for _, one := range unreadable {
		sess.IO.Note("note: %v; if the pod runs on this node, it is removed without its hooks, "+
			"and its files stay in the state directory", one)
	}
	applied = slices.DeleteFunc(applied, func(p state.AppliedPod) bool {
		return p.Checkpoint.Endpoint != "unix://"+socket
	})
	if len(applied) == 0 {
		return nil
	}
	if _, err = node.Up(ctx, o); err != nil {
		return err
	}
	return deletePodsAt(ctx, sess, socket, selection.Refs(selection.DesiredOf(applied)))
}

// purge takes the node down and removes everything of podctl: pods on any runtime, rules of the kernel, cgroups and
// files.
func purge(ctx context.Context, sess *session.Session, o node.Options) error {
	layout := sess.Flags.Layout()
	if _, err := os.Stat(layout.Root); errors.Is(err, os.ErrNotExist) {
		sess.IO.Print("nothing to remove: %s does not exist", layout.Root)
		return nil
	}
	agent, err := layout.Locks().Agent(ctx)
	if locked := (*filelock.LockedError)(nil); errors.As(err, &locked) {
		return fmt.Errorf(
			"an agent is running for %s: stop it first, for example with systemctl disable --now podctl-agent (%w)",
			layout.Root, err)
	}
	if err != nil {
		return err
	}
	kept, err := purgeWith(ctx, sess, o, agent)
	if err != nil {
		return err
	}
	for _, path := range kept {
		sess.IO.Note("note: %s was not created by podctl and is kept", path)
	}
	sess.IO.Print("node is down, and everything that podctl created is removed")
	return nil
}

// purgeWith is purge with the lock of the agent, which it releases.
func purgeWith(
	ctx context.Context, sess *session.Session, o node.Options, agent *filelock.Lock,
) (kept []string, err error) {
	layout := sess.Flags.Layout()
	uids, err := purgePods(ctx, sess, o)
	if err == nil {
		err = node.Down(ctx, o)
	}
	if err == nil && (sess.Flags.ProxyMode != config.ProxyNone || proxy.Left(layout)) {
		err = proxy.Remove(layout)
	}
	if err == nil {
		err = errors.Join(cgroup.RemoveTiers(ctx, sess.Flags.CgroupRoot), node.Unmount(layout.Root))
	}
	if err != nil {
		return nil, errors.Join(err, agent.Unlock())
	}
	return layout.Purge(uids, agent)
}

// purgePods deletes all pods. It deletes workloads and Services first, so that their pods and rules are not recreated.
func purgePods(ctx context.Context, sess *session.Session, o node.Options) ([]types.UID, error) {
	if err := forgetStored(ctx, sess); err != nil {
		return nil, err
	}
	applied, unreadable, err := state.Applied(sess.Flags.Layout())
	if err = errors.Join(append(unreadable, err)...); err != nil {
		return nil, fmt.Errorf("cannot list the pods: %w", err)
	}
	var uids []types.UID
	others := map[string][]model.PodRef{}
	own := "unix://" + node.Socket(o.Dir)
	for _, p := range applied {
		uids = append(uids, p.Desired.Pod.UID)
		if p.Checkpoint.Endpoint != own {
			others[p.Checkpoint.Endpoint] = append(others[p.Checkpoint.Endpoint], model.RefOf(p.Desired.Pod))
		}
	}
	for endpoint, pods := range others {
		if err := deletePodsAt(ctx, sess, strings.TrimPrefix(endpoint, "unix://"), pods); err != nil {
			return nil, fmt.Errorf("cannot delete the pods on %s: %w", endpoint, err)
		}
	}
	return uids, deletePods(ctx, sess, o)
}

// forgetStored removes the records of workloads and Services.
func forgetStored(ctx context.Context, sess *session.Session) error {
	workloads, err := sess.Flags.Layout().Workloads().List()
	if err != nil {
		return err
	}
	for _, key := range workloads {
		if _, err = sess.Workloads().Delete(ctx, key); err != nil {
			return err
		}
	}
	stored, err := sess.Flags.Layout().Objects().List()
	stored = slices.DeleteFunc(stored, func(key state.ObjectKey) bool { return key.Kind != podspec.KindService })
	for _, key := range stored {
		err = errors.Join(err, sess.Objects().Delete(ctx, key))
	}
	return err
}

func deletePodsAt(ctx context.Context, sess *session.Session, socket string, pods []model.PodRef) error {
	sess = sess.At(socket, "the record of the pods")
	return errors.Join(lifecycle.DeleteWithNode(ctx, sess, pods), sess.Close())
}
