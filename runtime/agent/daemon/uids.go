package daemon

import (
	"cmp"
	"context"
	"encoding/hex"
	"fmt"
	"maps"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/agent/sources"
	"github.com/podctl/podctl/runtime/criconfig"
	"github.com/podctl/podctl/runtime/sleep"
	"github.com/podctl/podctl/runtime/state"
)

// staticUIDs returns the uids that a kubelet has given pods from files without metadata.uid. It waits until the runtime
// and the records can be read, because such a pod would otherwise run twice.
func (d *daemon) staticUIDs(ctx context.Context) sources.UIDs {
	for logged := false; ; logged = true {
		uids, err := d.readStaticUIDs(ctx)
		if err == nil {
			return uids
		}
		if !logged {
			d.Log.Warn("waiting to read the uids of a kubelet's static pods", "error", err.Error())
		}
		if sleep.For(ctx, time.Second) != nil {
			return nil
		}
	}
}

func (d *daemon) readStaticUIDs(ctx context.Context) (sources.UIDs, error) {
	uids, err := recordedUIDs(d.Layout)
	if err != nil {
		return nil, err
	}
	list, err := d.engine.Client.ListPodSandbox(ctx, &runtimeapi.ListPodSandboxRequest{})
	if err != nil {
		return nil, fmt.Errorf("listing sandboxes: %w", err)
	}
	node := d.engine.Host.Node().Name
	if d.Cluster != nil {
		node = cmp.Or(d.Cluster.NodeName, node)
	}
	maps.Copy(uids, uidsOf(list.GetItems(), node))
	return uids, nil
}

// recordedUIDs returns the pods with such a uid that podctl has adopted.
func recordedUIDs(layout state.Layout) (sources.UIDs, error) {
	uids := sources.UIDs{}
	all, err := layout.Pods().CheckpointUIDs()
	if err != nil {
		return nil, err
	}
	for _, uid := range all {
		if !isStaticUID(uid) {
			continue
		}
		// A checkpoint that cannot be read has no name. The agent reports it.
		if c, err := layout.Pod(uid).Checkpoint().Read(); err == nil && c.Pod.Name != "" {
			uids[types.NamespacedName{Namespace: c.Pod.Namespace, Name: c.Pod.Name}] = uid
		}
	}
	return uids, nil
}

// uidsOf returns the pods that sandboxes with such a uid belong to. The newest sandbox of a pod counts. A kubelet has
// appended the name of the node to that of the pod (kubelet: generatePodName).
func uidsOf(sandboxes []*runtimeapi.PodSandbox, node string) sources.UIDs {
	uids, created := sources.UIDs{}, map[types.NamespacedName]int64{}
	for _, s := range sandboxes {
		labels, annotations := s.GetLabels(), s.GetAnnotations()
		uid, name := types.UID(labels[criconfig.LabelPodUID]), labels[criconfig.LabelPodName]
		if !isStaticUID(uid) {
			continue
		}
		if !criconfig.MadeByPodctl(annotations) {
			short, named := strings.CutSuffix(name, "-"+strings.ToLower(node))
			if source := annotations[podspec.AnnotationConfigSource]; !named || source != "file" && source != "http" {
				continue
			}
			name = short
		}
		pod := types.NamespacedName{Namespace: labels[criconfig.LabelPodNamespace], Name: name}
		if at := s.GetCreatedAt(); uids[pod] == "" || at > created[pod] {
			uids[pod], created[pod] = uid, at
		}
	}
	return uids
}

// isStaticUID reports whether a uid has the form that a kubelet gives a static pod: the hash of its manifest (kubelet:
// applyDefaults).
func isStaticUID(uid types.UID) bool {
	sum, err := hex.DecodeString(string(uid))
	return err == nil && len(sum) == 16
}
