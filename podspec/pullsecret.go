package podspec

import (
	"cmp"
	"fmt"

	v1 "k8s.io/api/core/v1"
)

// PullSecretFault says why a Secret holds no credentials for pulls; empty when it does.
// Pulls go on without it (kubelet: secretsToTrackedDockerConfigs).
func PullSecretFault(s *v1.Secret) string {
	key, ok := map[v1.SecretType]string{
		v1.SecretTypeDockerConfigJson: v1.DockerConfigJsonKey,
		v1.SecretTypeDockercfg:        v1.DockerConfigKey,
	}[s.Type]
	if !ok {
		return fmt.Sprintf("its type is %s, and not %s", cmp.Or(s.Type, v1.SecretTypeOpaque), v1.SecretTypeDockerConfigJson)
	}
	if len(s.Data[key]) == 0 {
		return "it has no " + key
	}
	return ""
}
