package node

import (
	"encoding/json"
	"math/rand/v2"
	"testing"

	v1 "k8s.io/api/core/v1"
)

// FuzzFromAPI makes all decisions about an arbitrary pod of an API server. None is a panic.
func FuzzFromAPI(f *testing.F) {
	const meta = `"metadata":{"namespace":"a","name":"web","uid":"0b5a1bd2-3c3e-4a4f-9d7b-2f6a8c1e0d11"}`
	for _, spec := range []string{
		`"containers":[{"name":"c","image":"i","env":[{"name":"A","valueFrom":{"secretKeyRef":{"name":"../x","key":"a/b"}}}],
			"volumeMounts":[{"name":"v","mountPath":"/v","subPath":"../.."}]}],
			"volumes":[{"name":"v","secret":{"secretName":"s","items":[{"key":"k","path":"../../etc/passwd"}]}}]`,
		`"containers":[{"name":"c","image":"i","resources":{"limits":{"cpu":"-1","memory":"9E"}},"livenessProbe":{"httpGet":{"port":-1}}}],
			"volumes":[{"name":"v","projected":{"sources":[{"serviceAccountToken":{"path":"/t","expirationSeconds":-1}},{"clusterTrustBundle":{"path":".."}}]}}]`,
		`"initContainers":[{"name":"i","restartPolicy":"Always"}],"ephemeralContainers":[{"name":"i","targetContainerName":"x"}],"containers":null`,
		`"containers":[{"name":"a\nb","image":"\u001b[31m","ports":[{"hostPort":99999,"hostIP":"x"}]}],"hostAliases":[{"ip":"x","hostnames":["a b"]}],"dnsConfig":{"options":[{}]}`,
	} {
		f.Add([]byte("{"+meta+`,"spec":{`+spec+"}}"), uint64(1))
	}
	f.Fuzz(func(t *testing.T, text []byte, seed uint64) {
		pod := &v1.Pod{}
		if json.Unmarshal(text, pod) == nil {
			hostile{rand.New(rand.NewPCG(seed, 0))}.survive(t, pod)
		}
	})
}
