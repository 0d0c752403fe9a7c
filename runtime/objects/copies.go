package objects

import (
	"context"
	"errors"
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/state"
)

// Copies are the last known ConfigMaps, Secrets and claims of the API server that pods on this node refer to. The agent
// of a node keeps them for a start without the API server. All other commands read them, so that a plan uses the
// objects that the agent uses.
type Copies struct {
	Dir state.Objects
	// MemorySecrets is set if Secrets and tokens must not be on disk.
	MemorySecrets bool
}

// absent is the content of a file that records that the API server does not have the object.
const absent = "null\n"

// Complete adds the copies that a pod of the API server refers to. It returns other pods as they are.
func (c Copies) Complete(_ context.Context, d *podspec.Desired) (*podspec.Desired, error) {
	if d == nil || !d.FromCluster() {
		return d, nil
	}
	return d.WithShared(func(_ string, name podspec.ObjectName) (*podspec.Object, error) {
		if !InCluster(name.Kind) {
			return nil, nil
		}
		found, known, err := c.Find(CopyKey(d.Pod, name))
		if err == nil && !known {
			err = podspec.UnreadError{}
		}
		if err != nil {
			return nil, err
		}
		return InPod(found, name)
	})
}

// CopyKey returns the key of an object that a pod names. The name of an object of one pod also has the uid of the pod,
// so that no pod can name that of another. A claim counts as one, because a later pod may find another claim under the
// same name.
func CopyKey(pod *v1.Pod, name podspec.ObjectName) state.ObjectKey {
	key := state.ObjectKey{Namespace: pod.Namespace, Kind: name.Kind, Name: name.Name}
	if name.Kind == podspec.KindClaim {
		key.Name = podspec.ClaimKey(name.Name)
	}
	if podspec.IsOfPod(key.Kind, key.Name) {
		key.Name = podspec.BindName(pod.UID, key.Name)
	}
	return key
}

// InPod returns an object with the name that its pod has for it. CopyKey gives an object of one pod another one. The
// error is an UnreadError for one that the pod cannot use.
func InPod(o *podspec.Object, name podspec.ObjectName) (*podspec.Object, error) {
	switch {
	case o == nil || name.Kind != podspec.KindClaim && !podspec.IsOfPod(name.Kind, name.Name):
		return o, nil
	case o.Unusable != nil:
		return nil, *o.Unusable
	}
	o = o.DeepCopy()
	o.Meta().Name = name.Name
	return o, nil
}

// InCluster reports whether objects of a kind are read from the API server.
func InCluster(kind string) bool {
	return kind == podspec.KindConfigMap || kind == podspec.KindSecret || kind == podspec.KindClaim
}

// CanExist reports whether an object can have this name. A pod may name another.
func (c Copies) CanExist(key state.ObjectKey) bool {
	_, err := c.Dir.Path(key)
	return err == nil && (podspec.IsOfPod(key.Kind, key.Name) || len(validation.IsDNS1123Subdomain(key.Name)) == 0)
}

// Find returns the copy of an object. It is nil if the API server does not have the object. known is false if there is
// no copy, or if it is damaged: then nothing is known about the object. No object has an invalid name.
func (c Copies) Find(key state.ObjectKey) (found *podspec.Object, known bool, err error) {
	if !c.CanExist(key) {
		return nil, true, nil
	}
	text, err := c.Dir.Read(key)
	switch {
	case err != nil || text == nil:
		return nil, false, err
	case string(text) == absent:
		return nil, true, nil
	}
	found, err = decode(key, text)
	if errors.Is(err, state.ErrDamaged) {
		return nil, false, nil // The agent replaces it with the next answer of the API server.
	}
	return found, err == nil, err
}

// Keep replaces the copy of an object. A nil object records that the API server does not have it. The caller is the
// only process that writes copies, and makes one call at a time. The copy of a Secret that must not be on disk is
// removed.
func (c Copies) Keep(key state.ObjectKey, o *podspec.Object) error {
	if c.MemorySecrets && o != nil && o.Secret != nil {
		return c.Dir.Remove(key)
	}
	text := []byte(absent)
	if o != nil {
		var err error
		if text, err = encode(o); err != nil {
			return fmt.Errorf("storing the copy of %s: %w", key, err)
		}
	}
	return c.Dir.Write(key, text)
}

// HideSecrets removes all copies of Secrets and tokens if they must not be on disk.
func (c Copies) HideSecrets() error {
	if !c.MemorySecrets {
		return nil
	}
	keys, err := c.Dir.List()
	err = errors.Join(err, c.Dir.RemoveUnfinished())
	for _, key := range keys {
		if key.Kind == podspec.KindSecret {
			err = errors.Join(err, c.Dir.Remove(key))
		}
	}
	return err
}

// Same reports whether two normal objects are equal. Nil stands for no object.
func Same(a, b *podspec.Object) bool {
	if a == nil || b == nil {
		return a == b
	}
	return equality.Semantic.DeepEqual(a.API(), b.API()) && equality.Semantic.DeepEqual(a.Volume, b.Volume) &&
		equality.Semantic.DeepEqual(a.Unusable, b.Unusable)
}

// Size returns the size of a normal object in its copy, in bytes. It is zero for no object.
func Size(o *podspec.Object) int {
	if o == nil {
		return 0
	}
	text, err := encode(o)
	if err != nil {
		return 0
	}
	return len(text)
}
