package podspec

import (
	"errors"
	"slices"

	v1 "k8s.io/api/core/v1"
)

// FindObject returns a stored object, or nil if there is none. The error is an UnreadError if nothing is known about
// the object.
type FindObject func(namespace string, name ObjectName) (*Object, error)

// UnreadError reports that the API server has not sent an object yet, or that a claim cannot be used. It has no values
// of the object.
type UnreadError struct {
	// Reason is the cause, if it is known.
	Reason string `json:"reason,omitempty"`
	// Status is the text for the status and the events of the pod. If empty, it is a kubelet's. A claim that cannot be
	// used always has one.
	Status string `json:"status,omitempty"`
}

// Error returns the reason.
func (e UnreadError) Error() string {
	if e.Reason == "" {
		return "it has not been read from the API server"
	}
	return "it has not been read from the API server: " + e.Reason
}

// WithShared returns the pod with the current stored objects that its own manifest does not include. They replace those
// found before, and missing ones are dropped. If the pod names no such object, WithShared looks nothing up. It does not
// change d. The values of Secrets that were only in memory come from find, too.
func (d *Desired) WithShared(find FindObject) (*Desired, error) {
	if d == nil || d.Redacted && !d.MemorySecrets || d.Rebuilt {
		return d, nil
	}
	own := d.Own()
	if d.Redacted {
		own.Secrets = nil // no digest may be used as a value
	}
	with := own.copied()
	var shared []ObjectName
	var unread map[ObjectName]UnreadError
	for _, name := range ReferredObjects(d.Pod) {
		if own.Has(name.Kind, name.Name) {
			continue
		}
		found, err := find(d.Pod.Namespace, name)
		why := UnreadError{}
		switch {
		case errors.As(err, &why):
			if unread == nil {
				unread = map[ObjectName]UnreadError{}
			}
			unread[name] = why
		case err != nil:
			return nil, err
		case found != nil && (found.Claim == nil || found.Volume != nil):
			with.Put(found)
			shared = append(shared, name)
		}
	}
	if len(shared)+len(d.Shared)+len(unread)+len(d.Unread) == 0 && !d.Redacted {
		return d, nil
	}
	other := *d
	other.Objects, other.Shared, other.Unread, other.Redacted = with, shared, unread, false
	if d.memo != nil {
		other.memo = newMemo()
	}
	return &other, nil
}

// Own returns the objects that came with the pod's manifest.
func (d *Desired) Own() Objects {
	if len(d.Shared) == 0 {
		return d.Objects
	}
	own := d.Objects.copied()
	for _, name := range d.Shared {
		switch name.Kind {
		case KindSecret:
			delete(own.Secrets, name.Name)
		case KindClaim:
			delete(own.Volumes, name.Name)
		default:
			delete(own.ConfigMaps, name.Name)
		}
	}
	return own
}

// Shares reports whether the pod uses this object from the store, or would if it existed. A pod of the API server uses
// no stored objects: it means those of its cluster.
func (d *Desired) Shares(namespace string, name ObjectName) bool {
	if d.FromCluster() || d.Pod.Namespace != namespace || !slices.Contains(ReferredObjects(d.Pod), name) {
		return false
	}
	own := d.Own()
	return name.Kind == KindClaim || !own.Has(name.Kind, name.Name)
}

// SameManifest reports whether two pods were built from the same manifest, including the values of Secrets. Objects
// from the store do not count.
func (d *Desired) SameManifest(other *Desired) bool {
	a := &Desired{Pod: d.Pod, Objects: d.Own(), Origin: d.Origin}
	b := &Desired{Pod: other.Pod, Objects: other.Own(), Origin: other.Origin}
	return a.SameAs(b)
}

// SameGeneration reports whether two versions of a pod of the API server have the same metadata.generation. It is true
// for other pods. An edit that was taken back leaves the same manifest with another generation, which the status must
// have.
func (d *Desired) SameGeneration(other *Desired) bool {
	return !d.FromCluster() || d.Pod.Generation == other.Pod.Generation
}

// Put adds a ConfigMap, a Secret or the volume of a bound claim. It replaces one with the same name.
func (o *Objects) Put(object *Object) {
	switch {
	case object.ConfigMap != nil:
		if o.ConfigMaps == nil {
			o.ConfigMaps = map[string]*v1.ConfigMap{}
		}
		o.ConfigMaps[object.ConfigMap.Name] = object.ConfigMap
	case object.Secret != nil:
		if o.Secrets == nil {
			o.Secrets = map[string]*v1.Secret{}
		}
		o.Secrets[object.Secret.Name] = object.Secret
	case object.Volume != nil:
		if o.Volumes == nil {
			o.Volumes = map[string]*HostVolume{}
		}
		o.Volumes[object.Claim.Name] = object.Volume
	}
}
