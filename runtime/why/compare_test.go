package why_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/podspec/load"
	"github.com/podctl/podctl/runtime/agent/api"
	"github.com/podctl/podctl/runtime/model/modeltest"
	"github.com/podctl/podctl/runtime/why"
)

// pair is a pod on this node and in the API server.
type pair struct {
	local  why.Local
	remote v1.Pod
	// unsent, old and off are what the agent knows: the status was not sent, the mirror pod shows an earlier version, or
	// there are no mirror pods.
	unsent, old, off bool
	// alone and absent are set if only one of the two exists.
	alone, absent bool
}

// newPair returns a pod that is the same here and there.
func newPair(t *testing.T, owner string) *pair {
	t.Helper()
	d := modeltest.Load(t, onePod)
	d.Owner, d.Pod.Generation = owner, 3
	p := &pair{local: why.Local{Desired: d, Status: d.Pod.DeepCopy()}, remote: *d.Pod.DeepCopy()}
	p.local.Status.Status.Phase, p.remote.Status.Phase = v1.PodRunning, v1.PodRunning
	if owner != podspec.OwnerAPI {
		p.remote.Name, p.remote.UID = "web-n1", "mirror"
		p.remote.Annotations = map[string]string{v1.MirrorPodAnnotationKey: "h"}
	}
	return p
}

// TestCompare checks each difference between a node and the API server.
func TestCompare(t *testing.T) {
	now := metav1.NewTime(noon.Add(17 * time.Second))
	for name, c := range map[string]struct {
		owner string
		set   func(*pair)
		want  string
	}{
		"the same":        {podspec.OwnerAPI, func(*pair) {}, ""},
		"the same mirror": {"", func(*pair) {}, ""},
		"only here": {podspec.OwnerAPI, func(p *pair) {
			p.alone = true
		}, "OnlyHere: the API server has no pod with this uid"},
		"a replacement": {podspec.OwnerAPI, func(p *pair) {
			p.remote.UID, p.remote.Status.Phase = "v", v1.PodSucceeded
		}, "OnlyHere: the API server has no pod with this uid, but one with this name and the uid v"},
		"no mirror": {"", func(p *pair) {
			p.alone = true
		}, "OnlyHere: the API server has no mirror pod for it"},
		"ends here, gone there": {podspec.OwnerAPI, func(p *pair) {
			p.alone, p.local.Ends = true, true
		}, "DeletionPending: the object is gone; the pod ends here"},
		"ends here": {podspec.OwnerAPI, func(p *pair) {
			p.local.Ends = true
		}, "DeletionPending: the pod ends here; the API server does not delete it"},
		"only there": {podspec.OwnerAPI, func(p *pair) {
			p.absent = true
		}, "OnlyThere: this node has no record of the pod"},
		"ended there": {podspec.OwnerAPI, func(p *pair) {
			p.absent, p.remote.Status.Phase = true, v1.PodFailed
		}, ""},
		"only the mirror is there": {"", func(p *pair) {
			p.absent = true
		}, "OnlyThere: a mirror pod without a pod on this node"},
		"deleted there": {podspec.OwnerAPI, func(p *pair) {
			p.remote.DeletionTimestamp, p.remote.DeletionGracePeriodSeconds, p.remote.Generation = &now, new(int64(30)), 4
		}, "DeletionPending: the API server deletes the pod: 17 s of 30 s are left"},
		"finalizers": {podspec.OwnerAPI, func(p *pair) {
			p.remote.DeletionTimestamp, p.remote.Finalizers = &now, []string{"a/b"}
			p.local.Desired.Pod.Finalizers = p.remote.Finalizers
			p.local.Status.Status.Phase, p.remote.Status.Phase = v1.PodFailed, v1.PodFailed
		}, "DeletionPending: the API server deletes the pod; it waits for the finalizers a/b"},
		"deleted there, not here": {podspec.OwnerAPI, func(p *pair) {
			p.absent, p.remote.DeletionTimestamp = true, &now
		}, "DeletionPending: the API server deletes the pod; this node has no record of the pod"},
		"generation": {podspec.OwnerAPI, func(p *pair) {
			p.remote.Generation, p.remote.Spec.Containers[0].Image = 4, "i:2"
		}, "OtherVersion: generation 3 here, 4 in the API server: spec.containers[a].image: i:1 -> i:2"},
		"labels": {podspec.OwnerAPI, func(p *pair) {
			p.remote.Labels = map[string]string{"x": "y"}
		}, "OtherVersion: generation 3: metadata.labels.x: + y"},
		"too large": {podspec.OwnerAPI, func(p *pair) {
			p.remote.Name = "bad"
		}, "OtherVersion: podctl cannot use the newest version: bad"},
		"no mirror pods": {"", func(p *pair) {
			p.alone, p.off = true, true
		}, ""},
		"an earlier mirror": {"", func(p *pair) {
			p.old = true
		}, "OtherVersion: the mirror pod shows an earlier version"},
		"pending": {podspec.OwnerAPI, func(p *pair) {
			p.unsent, p.remote.Status.Phase = true, v1.PodPending
		}, "StatusNotSent: the newest status was not sent yet: Running, 0 of 0 ready, 0 restarts here, Pending, 0 of 0 ready, 0 restarts in the API server"},
		"status of a mirror": {"", func(p *pair) {
			p.remote.Status.ContainerStatuses = []v1.ContainerStatus{{Ready: true, RestartCount: 2}}
		}, "OtherStatus: the status differs: Running, 0 of 0 ready, 0 restarts here, Running, 1 of 1 ready, 2 restarts in the API server"},
		"unknown here": {podspec.OwnerAPI, func(p *pair) {
			p.local.Status, p.remote.Status.Phase = nil, v1.PodPending
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPair(t, c.owner)
			c.set(p)
			remote := &api.ClusterPods{Node: "N1", NoMirrors: p.off}
			if p.old {
				remote.OldMirrors = []types.UID{p.remote.UID}
			}
			if !p.alone {
				remote.Items = []v1.Pod{p.remote}
			}
			if p.unsent {
				remote.Unsent = []types.UID{p.remote.UID}
			}
			var locals []why.Local
			if !p.absent {
				locals = []why.Local{p.local}
			}
			var got []string
			for _, d := range why.Compare(noon, locals, remote, loadPod) {
				got = append(got, fmt.Sprintf("%s: %s", d.Kind, d.Message))
			}
			if text := strings.Join(got, "\n"); text != c.want {
				t.Errorf("%s\nwant %s", text, c.want)
			}
		})
	}
}

// loadPod loads all pods but one.
func loadPod(pod *v1.Pod) (*podspec.Desired, error) {
	if pod.Name == "bad" {
		return nil, errors.New("bad")
	}
	return load.FromAPI(pod)
}
