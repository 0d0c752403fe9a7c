package volume

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
	apiresource "k8s.io/kubernetes/pkg/api/v1/resource"
	"k8s.io/kubernetes/pkg/fieldpath"
)

// file is one file of a volume's content.
type file struct {
	data []byte
	mode uint32
}

// payload is a volume's content by relative path.
type payload map[string]file

// digestOf identifies content: paths, modes and bytes.
func digestOf(files payload) string {
	h := sha256.New()
	for _, path := range slices.Sorted(maps.Keys(files)) {
		f := files[path]
		fmt.Fprintf(h, "%q %o %d\n", path, f.mode, len(f.data)) //nolint:errcheck // a hash takes every write
		h.Write(f.data)
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// UnresolvedError says that a volume's content is not in the manifest.
type UnresolvedError struct{ Kind, Name, Key string }

// Error names what is missing.
func (e *UnresolvedError) Error() string {
	if e.Key != "" {
		return fmt.Sprintf("%s %s has no key %q", e.Kind, e.Name, e.Key)
	}
	return fmt.Sprintf("%s %s is not in the manifest", e.Kind, e.Name)
}

// content computes what a volume shall hold.
func (c Context) content(vol *v1.Volume) (payload, error) {
	files := payload{}
	var err error
	switch {
	case vol.ConfigMap != nil:
		s := vol.ConfigMap
		err = c.addConfigMap(files, s.Name, selected{s.Items, s.DefaultMode, s.Optional})
	case vol.Secret != nil:
		s := vol.Secret
		err = c.addSecret(files, s.SecretName, selected{s.Items, s.DefaultMode, s.Optional})
	case vol.DownwardAPI != nil:
		err = c.addDownward(files, vol.DownwardAPI.Items, vol.DownwardAPI.DefaultMode)
	case vol.Projected != nil:
		err = c.addProjected(files, vol.Projected)
	}
	if err != nil {
		return nil, err
	}
	for path := range files {
		if !within(path) {
			return nil, fmt.Errorf("path %q leads out of the volume", path)
		}
	}
	return files, nil
}

// selected says which keys of an object are taken, and with which modes.
type selected struct {
	items    []v1.KeyToPath
	mode     *int32
	optional *bool
}

// defaultMode is the mode of files for which nobody gives one.
const defaultMode = 0o644

func modeOf(own, fallback *int32) uint32 {
	switch {
	case own != nil:
		return uint32(*own)
	case fallback != nil:
		return uint32(*fallback)
	}
	return defaultMode
}

// add takes the chosen keys of an object's data.
func (s selected) add(files payload, data map[string][]byte, missing func(key string) error) error {
	if len(s.items) == 0 {
		for key, value := range data {
			files[key] = file{value, modeOf(nil, s.mode)}
		}
		return nil
	}
	for _, item := range s.items {
		value, ok := data[item.Key]
		if !ok {
			if s.optional != nil && *s.optional {
				continue
			}
			return missing(item.Key)
		}
		files[item.Path] = file{value, modeOf(item.Mode, s.mode)}
	}
	return nil
}

func (c Context) addConfigMap(files payload, name string, s selected) error {
	cm := c.Desired.Objects.ConfigMaps[name]
	if cm == nil {
		return s.absent("ConfigMap", name)
	}
	data := map[string][]byte{}
	for key, value := range cm.Data {
		data[key] = []byte(value)
	}
	maps.Copy(data, cm.BinaryData)
	return s.add(files, data, func(key string) error { return &UnresolvedError{"ConfigMap", name, key} })
}

func (c Context) addSecret(files payload, name string, s selected) error {
	secret := c.Desired.Objects.Secrets[name]
	if secret == nil {
		return s.absent("Secret", name)
	}
	return s.add(files, secret.Data, func(key string) error { return &UnresolvedError{"Secret", name, key} })
}

// absent is no error for an optional object: the volume is empty.
func (s selected) absent(kind, name string) error {
	if s.optional != nil && *s.optional {
		return nil
	}
	return &UnresolvedError{Kind: kind, Name: name}
}

func (c Context) addDownward(files payload, items []v1.DownwardAPIVolumeFile, mode *int32) error {
	for i := range items {
		item := &items[i]
		text, err := c.downwardValue(item)
		if err != nil {
			return fmt.Errorf("downwardAPI item %s: %w", item.Path, err)
		}
		files[item.Path] = file{[]byte(text), modeOf(item.Mode, mode)}
	}
	return nil
}

func (c Context) downwardValue(item *v1.DownwardAPIVolumeFile) (string, error) {
	switch {
	case item.FieldRef != nil:
		return fieldpath.ExtractFieldPathAsString(c.Desired.Pod, item.FieldRef.FieldPath)
	case item.ResourceFieldRef != nil:
		ref := item.ResourceFieldRef
		return apiresource.ExtractResourceValueByContainerNameAndNodeAllocatable(ref, c.Desired.Pod, ref.ContainerName, c.Allocatable)
	}
	return "", errors.New("has neither fieldRef nor resourceFieldRef")
}

// addProjected merges the sources in order: a later one replaces files of the
// same path.
func (c Context) addProjected(files payload, projected *v1.ProjectedVolumeSource) error {
	var errs []error
	for i := range projected.Sources {
		source := &projected.Sources[i]
		switch {
		case source.ConfigMap != nil:
			s := source.ConfigMap
			errs = append(errs, c.addConfigMap(files, s.Name, selected{s.Items, projected.DefaultMode, s.Optional}))
		case source.Secret != nil:
			s := source.Secret
			errs = append(errs, c.addSecret(files, s.Name, selected{s.Items, projected.DefaultMode, s.Optional}))
		case source.DownwardAPI != nil:
			errs = append(errs, c.addDownward(files, source.DownwardAPI.Items, projected.DefaultMode))
		default:
			errs = append(errs, fmt.Errorf("source %d of the projected volume is not supported", i))
		}
	}
	return errors.Join(errs...)
}
