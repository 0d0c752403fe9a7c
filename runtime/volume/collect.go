package volume

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"

	v1 "k8s.io/api/core/v1"
	apiresource "k8s.io/kubernetes/pkg/api/v1/resource"
	"k8s.io/kubernetes/pkg/fieldpath"
)

// selection says which keys of an object become files, under which paths and
// with which modes.
type selection struct {
	// path is the field of the reference, and nameField the one in it that names
	// the object.
	path      string
	nameField string
	items     []v1.KeyToPath
	mode      *int32
	optional  *bool
}

func (s selection) isOptional() bool { return s.optional != nil && *s.optional }

// configMap takes data and binaryData; a key is in one of them only.
func (c collector) configMap(name string, s selection) (map[string]File, error) {
	object := c.Desired.Objects.ConfigMaps[name]
	if object == nil {
		return s.absent("ConfigMap", name)
	}
	data := make(map[string][]byte, len(object.Data)+len(object.BinaryData))
	for key, text := range object.Data {
		data[key] = []byte(text)
	}
	maps.Copy(data, object.BinaryData)
	return s.take("ConfigMap", name, data)
}

// secret takes data, and stringData where nobody has merged it: the API server
// does on writing, and a manifest may come from a file.
func (c collector) secret(name string, s selection) (map[string]File, error) {
	object := c.Desired.Objects.Secrets[name]
	if object == nil {
		return s.absent("Secret", name)
	}
	data := maps.Clone(object.Data)
	if data == nil {
		data = map[string][]byte{}
	}
	for key, text := range object.StringData {
		data[key] = []byte(text)
	}
	return s.take("Secret", name, data)
}

// absent is no error for an optional object: the volume is empty.
func (s selection) absent(kind, name string) (map[string]File, error) {
	if s.isOptional() {
		return nil, nil
	}
	return nil, &UnresolvedError{Path: s.path + "." + s.nameField, Kind: kind, Name: name}
}

// take makes files of the keys that were chosen, or of all.
func (s selection) take(kind, name string, data map[string][]byte) (map[string]File, error) {
	files := make(map[string]File, len(data))
	if len(s.items) == 0 {
		for key, value := range data {
			files[key] = File{Data: value, Mode: modeOf(s.mode)}
		}
		return files, nil
	}
	for i := range s.items {
		item := &s.items[i]
		value, ok := data[item.Key]
		if ok {
			files[item.Path] = File{Data: value, Mode: modeOf(item.Mode, s.mode)}
			continue
		}
		if !s.isOptional() {
			return nil, &UnresolvedError{Path: fmt.Sprintf("%s.items[%d].key", s.path, i), Kind: kind, Name: name, Key: item.Key}
		}
	}
	return files, nil
}

// defaultMode is the mode of a file for which nobody gives one (the API server's
// default of defaultMode).
const defaultMode = 0o644

// modeOf is the first mode that is given.
func modeOf(given ...*int32) fs.FileMode {
	for _, mode := range given {
		if mode != nil {
			return fs.FileMode(uint32(*mode)).Perm()
		}
	}
	return defaultMode
}

// downwardAPI makes files of the pod's own fields and of its containers'
// resources (kubelet: downwardapi.CollectData).
func (c collector) downwardAPI(items []v1.DownwardAPIVolumeFile, mode *int32, at string) (map[string]File, error) {
	files := make(map[string]File, len(items))
	var errs []error
	for i := range items {
		item := &items[i]
		text, err := c.downwardValue(item)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s.items[%d]: %w", at, i, err))
			continue
		}
		files[item.Path] = File{Data: []byte(text), Mode: modeOf(item.Mode, mode)}
	}
	return files, errors.Join(errs...)
}

func (c collector) downwardValue(item *v1.DownwardAPIVolumeFile) (string, error) {
	switch {
	case item.FieldRef != nil:
		return fieldpath.ExtractFieldPathAsString(c.Desired.Pod, item.FieldRef.FieldPath)
	case item.ResourceFieldRef != nil:
		ref := item.ResourceFieldRef
		return apiresource.ExtractResourceValueByContainerNameAndNodeAllocatable(ref, c.Desired.Pod, ref.ContainerName, c.Allocatable)
	}
	return "", errors.New("it has neither fieldRef nor resourceFieldRef")
}
