package podspec_test

import (
	"slices"
	"testing"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/podspec/podspectest"
)

const takeoverPod = `apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  serviceAccountName: web
  imagePullSecrets: [{name: registry}]
  activeDeadlineSeconds: 60
  runtimeClassName: kata
  schedulingGates: [{name: example.com/gate}]
  containers:
  - name: app
    image: i:1
    envFrom: [{configMapRef: {name: a}}]
    env: [{name: S, valueFrom: {secretKeyRef: {name: s, key: k}}}]
    resources: {limits: {memory: 64Mi}}
    resizePolicy: [{resourceName: memory, restartPolicy: RestartContainer}]
    volumeMounts: [{name: c, mountPath: /c}]
  volumes:
  - {name: c, persistentVolumeClaim: {claimName: data}}
  - {name: p, projected: {sources: [{configMap: {name: a}}]}}
`

// TestTakeoverProblems checks that every field is named for which a kubelet would refuse a static pod or restart a
// container.
func TestTakeoverProblems(t *testing.T) {
	var refused, panics, restarts []string
	for _, o := range podspec.TakeoverProblems(podspectest.Desired(t, takeoverPod).Pod) {
		switch {
		case o.Refused:
			refused = append(refused, o.Path)
		case o.Panics:
			panics = append(panics, o.Path)
		default:
			restarts = append(restarts, o.Path)
		}
		if o.Detail == "" {
			t.Errorf("%s: no word why", o.Path)
		}
	}
	wantRefused := []string{
		"spec.serviceAccountName", "spec.imagePullSecrets[0]", "spec.schedulingGates[0]", "spec.containers[0].envFrom[0].configMapRef.name",
		"spec.containers[0].env[0].valueFrom.secretKeyRef", "spec.volumes[0].persistentVolumeClaim",
		"spec.volumes[1].projected.sources[0].configMap.name",
	}
	if !slices.Equal(refused, wantRefused) {
		t.Errorf("refused %v, want %v", refused, wantRefused)
	}
	if want := []string{"spec.runtimeClassName"}; !slices.Equal(panics, want) {
		t.Errorf("panics %v, want %v", panics, want)
	}
	want := []string{"spec.activeDeadlineSeconds", "spec.containers[0].resizePolicy[0]", "spec.volumes[1].projected"}
	if !slices.Equal(restarts, want) {
		t.Errorf("restarts %v, want %v", restarts, want)
	}
}

func TestPlainPodCanBeTakenOver(t *testing.T) {
	if got := podspec.TakeoverProblems(podspectest.Desired(t, podspectest.Minimal).Pod); len(got) > 0 {
		t.Errorf("problems %v", got)
	}
}
