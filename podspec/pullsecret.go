package podspec

import (
	"cmp"
	"fmt"

	v1 "k8s.io/api/core/v1"
)

// PullSecretFault returns the reason why a Secret has no credentials for pulls, or an empty string. Pulls continue
// without such a Secret (kubelet: secretsToTrackedDockerConfigs).
func PullSecretFault(s *v1.Secret) string {
	key, ok := map[v1.SecretType]string{
		v1.SecretTypeDockerConfigJson: v1.DockerConfigJsonKey,
		v1.SecretTypeDockercfg:        v1.DockerConfigKey,
	}[s.Type]
	if !ok {
		return fmt.Sprintf("its type is %s, not %s", cmp.Or(s.Type, v1.SecretTypeOpaque), v1.SecretTypeDockerConfigJson)
	}
	if len(s.Data[key]) == 0 {
		return "it has no " + key
	}
	return ""
}

// MissingPullSecrets returns the names of a pod's imagePullSecrets that do not exist or have not been read. It ignores
// empty names, which the API server accepts.
func MissingPullSecrets(d *Desired) []string {
	var names []string
	for _, ref := range d.Pod.Spec.ImagePullSecrets {
		if ref.Name != "" && d.Objects.Secrets[ref.Name] == nil {
			names = append(names, ref.Name)
		}
	}
	return names
}
