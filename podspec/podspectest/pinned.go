package podspectest

// Pinned is a pod with a secret of six digits in its environment and in a volume.
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
