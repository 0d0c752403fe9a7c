package state

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

func TestPathsAreThoseOfAKubelet(t *testing.T) {
	pod := Default().Pod("u1")
	tests := map[string]struct{ got, want string }{
		"pod directory":  {pod.Dir(), "/var/lib/podctl/pods/u1"},
		"checkpoint":     {pod.Checkpoint().Path(), "/var/lib/podctl/pods/u1/checkpoint.json"},
		"hosts file":     {pod.EtcHosts(), "/var/lib/podctl/pods/u1/etc-hosts"},
		"user namespace": {pod.IDs().Path(), "/var/lib/podctl/pods/u1/userns"},
		"emptyDir":       {ok(pod.VolumeDir("empty-dir", "tmp")), "/var/lib/podctl/pods/u1/volumes/kubernetes.io~empty-dir/tmp"},
		"configMap": {
			ok(pod.VolumeDir("configmap", "conf")),
			"/var/lib/podctl/pods/u1/volumes/kubernetes.io~configmap/conf",
		},
		"marker of an emptyDir": {
			ok(pod.VolumeMarker("empty-dir", "tmp")),
			"/var/lib/podctl/pods/u1/plugins/kubernetes.io~empty-dir/tmp/ready",
		},
		"marker of a configMap": {
			ok(pod.VolumeMarker("configmap", "conf")),
			"/var/lib/podctl/pods/u1/plugins/kubernetes.io~empty-dir/wrapped_conf/ready",
		},
		"subPath":                  {ok(pod.SubPath("data", "app", 2)), "/var/lib/podctl/pods/u1/volume-subpaths/data/app/2"},
		"container directory":      {ok(pod.TerminationLogs("app").Dir()), "/var/lib/podctl/pods/u1/containers/app"},
		"lock":                     {pod.lockFile(), "/var/lib/podctl/locks/u1.lock"},
		"node":                     {Default().NodeDir(), "/var/lib/podctl/node"},
		"pod log directory":        {ok(pod.Logs("default", "web").Dir()), "/var/log/pods/default_web_u1"},
		"container log":            {ok(pod.Logs("default", "web").File("app", 3)), "/var/log/pods/default_web_u1/app/3.log"},
		"logs of deleted pods":     {Default().DeletedLogs().Dir(), "/var/log/pods/.deleted"},
		"volumes of the pod":       {pod.Volumes(), "/var/lib/podctl/pods/u1/volumes"},
		"subPaths of the pod":      {pod.SubPaths(), "/var/lib/podctl/pods/u1/volume-subpaths"},
		"termination logs of pods": {pod.TerminationLogs("").above(), "/var/lib/podctl/pods/u1/containers"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if test.got != test.want {
				t.Errorf("got %s, want %s", test.got, test.want)
			}
		})
	}
}

func TestUIDsThatLeadOutOfTheDirectoryAreRefused(t *testing.T) {
	for _, uid := range []types.UID{"", ".", "..", "../../etc", "a/b", ".hidden", "a\x00b"} {
		t.Run(string(uid), func(t *testing.T) {
			pod := newLayout(t).Pod(uid)
			attempts := map[string]error{
				"WriteCheckpoint":  pod.Checkpoint().Write(&Checkpoint{}),
				"RemoveCheckpoint": pod.Checkpoint().Remove(),
				"MakeDir":          pod.MakeDir(pod.Dir(), 0o750),
				"MakeLogDir":       pod.Logs("default", "web").Make("app"),
				"SetAsideLogs":     pod.Logs("default", "web").Archive(testTime()),
			}
			_, attempts["ReadCheckpoint"] = pod.Checkpoint().Read()
			_, attempts["Lock"] = pod.Lock(t.Context())
			_, attempts["NewTerminationLog"] = pod.TerminationLogs("app").New()
			for what, err := range attempts {
				if err == nil || !strings.Contains(err.Error(), "metadata.uid") {
					t.Errorf("%s of uid %q: error %v, want one that names metadata.uid", what, uid, err)
				}
			}
		})
	}
}
