// Package podspectest loads manifests for tests. The input is the text of a manifest. The result is its wanted state;
// an error ends the test. Only tests import it.
package podspectest

import (
	"testing"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/podspec/digest"
	"github.com/podctl/podctl/podspec/input"
	"github.com/podctl/podctl/podspec/load"
)

// Minimal is the shortest manifest of a pod. More fields of its container or spec, or more documents, can be appended.
const Minimal = `apiVersion: v1
kind: Pod
metadata:
  name: web
spec:
  containers:
  - name: app
    image: registry.local/app:1
`

// WithEnv is a pod whose container takes variables from a ConfigMap and a Secret.
const WithEnv = `apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {mode: fast, level: "3"}
---
apiVersion: v1
kind: Secret
metadata: {name: login}
stringData: {password: hunter2}
---
apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  containers:
  - name: app
    image: registry.local/app:1
    env:
    - {name: A, value: plain}
    - {name: MODE, valueFrom: {configMapKeyRef: {name: settings, key: mode}}}
    - {name: PASSWORD, valueFrom: {secretKeyRef: {name: login, key: password}}}
    resources: {requests: {cpu: 100m}}
    livenessProbe: {tcpSocket: {port: 80}}
    volumeMounts: [{name: data, mountPath: /data}]
  volumes: [{name: data, emptyDir: {}}]
`

// Key returns the key for digests of one machine.
func Key() *digest.Key { return digest.NewKey([]byte("0123456789abcdef0123456789abcdef")) }

// OtherKey returns the key for digests of another machine.
func OtherKey() *digest.Key { return digest.NewKey([]byte("another key, of another machine.")) }

// Desired returns the first pod of a manifest, which must be valid. Its digests use Key.
func Desired(tb testing.TB, text string) *podspec.Desired {
	tb.Helper()
	m := load.Parse(input.Source{Name: "-", Text: []byte(text)})
	if m.Err() != nil || len(m.Pods) == 0 {
		tb.Fatalf("%d pods: %v", len(m.Pods), m.Err())
	}
	m.Pods[0].UseKey(Key())
	return m.Pods[0]
}

// FromAPI returns the first pod of a manifest as if it came from the API server. The ConfigMaps and Secrets of the
// manifest are objects of the cluster.
func FromAPI(tb testing.TB, text string) *podspec.Desired {
	tb.Helper()
	d := Desired(tb, text)
	of, err := load.FromAPI(d.Pod)
	if err != nil {
		tb.Fatal(err)
	}
	of.Objects = d.Objects
	of.UseKey(Key())
	return of
}
