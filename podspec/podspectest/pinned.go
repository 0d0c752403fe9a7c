package podspectest

// Pinned is a pod with a secret of six digits, in its environment and in a volume.
const Pinned = `apiVersion: v1
kind: Secret
metadata: {name: login}
stringData: {pin: "271828"}
---
apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - name: app
    image: i:1
    env: [{name: PIN, valueFrom: {secretKeyRef: {name: login, key: pin}}}]
    volumeMounts: [{name: v, mountPath: /v}]
  volumes: [{name: v, secret: {secretName: login}}]
`

// What an earlier podctl, whose digests had no key, wrote on the container of that pod.
const (
	PinnedHash = "v1:3f7d764f59a1f1620d5eccbb7f471232"
	PinnedSpec = `{"env":[{"name":"PIN","value":"secret:sha256:ded787fd3ddc"}],"image":"i:1","volumeMounts":[{"mountPath":"/v","name":"v"}],"volumes":{"v":"secret"}}`
)
