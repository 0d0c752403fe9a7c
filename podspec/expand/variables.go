package expand

import (
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/podspec/digest"
)

// Variable is one variable of a container, with values from ConfigMaps and Secrets already set.
type Variable struct {
	Name  string
	Value string
	// Expand is set if $(VAR) in Value refers to other variables. Only values in the manifest are expanded.
	Expand bool
	// From is a source whose value only the node or the runtime knows: fieldRef, resourceFieldRef or fileKeyRef. Value
	// is then empty.
	From *v1.EnvVarSource
	// Sensitive is set if the value comes from a Secret.
	Sensitive bool
	// Secret is the source of a sensitive value.
	Secret digest.SecretRef
}

// Resolve returns a container's variables in the kubelet's order: envFrom entries, each by key, then env (kubelet:
// makeEnvironmentVariables). A later variable replaces an earlier one with the same name. The second result lists
// missing references that are not optional.
func Resolve(d *podspec.Desired, c podspec.ContainerRef) ([]Variable, []podspec.MissingReference) {
	var env []Variable
	for i := range c.EnvFrom {
		env = append(env, envFrom(d.Objects, &c.EnvFrom[i])...)
	}
	for i := range c.Env {
		if one, ok := envVar(d.Objects, &c.Env[i]); ok {
			env = append(env, one)
		}
	}
	var missing []podspec.MissingReference
	for _, r := range podspec.EnvReferences(c) {
		missing = append(missing, d.Missing(r, c.Name, "")...)
	}
	return env, missing
}

// envFrom returns every key of an object. A ConfigMap's binary data does not become variables.
func envFrom(objects podspec.Objects, from *v1.EnvFromSource) []Variable {
	var env []Variable
	switch {
	case from.ConfigMapRef != nil:
		if cm := objects.ConfigMaps[from.ConfigMapRef.Name]; cm != nil {
			for _, key := range slices.Sorted(maps.Keys(cm.Data)) {
				env = append(env, Variable{Name: from.Prefix + key, Value: cm.Data[key]})
			}
		}
	case from.SecretRef != nil:
		if s := objects.Secrets[from.SecretRef.Name]; s != nil {
			for _, key := range slices.Sorted(maps.Keys(s.Data)) {
				ref := digest.SecretRef{Name: from.SecretRef.Name, Key: key}
				env = append(env, secretVariable(from.Prefix+key, ref, s.Data[key]))
			}
		}
	}
	return env
}

// envVar resolves one entry of env. It returns false if the entry is optional and missing.
func envVar(objects podspec.Objects, e *v1.EnvVar) (Variable, bool) {
	switch from := e.ValueFrom; {
	case from == nil:
		return Variable{Name: e.Name, Value: e.Value, Expand: true}, true
	case from.ConfigMapKeyRef != nil:
		if cm := objects.ConfigMaps[from.ConfigMapKeyRef.Name]; cm != nil {
			value, ok := cm.Data[from.ConfigMapKeyRef.Key]
			return Variable{Name: e.Name, Value: value}, ok
		}
		return Variable{}, false
	case from.SecretKeyRef != nil:
		if s := objects.Secrets[from.SecretKeyRef.Name]; s != nil {
			value, ok := s.Data[from.SecretKeyRef.Key]
			ref := digest.SecretRef{Name: from.SecretKeyRef.Name, Key: from.SecretKeyRef.Key}
			return secretVariable(e.Name, ref, value), ok
		}
		return Variable{}, false
	default:
		return Variable{Name: e.Name, From: from}, true
	}
}

// secretVariable returns a variable with the value of a Secret's key.
func secretVariable(name string, secret digest.SecretRef, value []byte) Variable {
	return Variable{Name: name, Value: string(value), Sensitive: true, Secret: secret}
}
