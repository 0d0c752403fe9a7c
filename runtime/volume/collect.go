package volume

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"

	v1 "k8s.io/api/core/v1"
	apiresource "k8s.io/kubernetes/pkg/api/v1/resource"
	"k8s.io/kubernetes/pkg/fieldpath"

	"github.com/podctl/podctl/podspec"
)

// selection defines which keys of an object become files, and the paths and modes of these files.
type selection struct {
	// path is the field of the reference. nameField is the field below it that names the object.
	path      string
	nameField string
	items     []v1.KeyToPath
	mode      *int32
	optional  *bool
}

func (s selection) isOptional() bool { return s.optional != nil && *s.optional }

// configMap returns the files of data and binaryData. No key is in both.
func (c collector) configMap(name string, s selection) (map[string]File, error) {
	object := c.Desired.Objects.ConfigMaps[name]
	if object == nil {
		return c.absent(s, "ConfigMap", name)
	}
	data := make(map[string][]byte, len(object.Data)+len(object.BinaryData))
	for key, text := range object.Data {
		data[key] = []byte(text)
	}
	maps.Copy(data, object.BinaryData)
	return s.take("ConfigMap", name, data)
}

// secret returns the files of data and stringData. The API server merges stringData on writing, but a manifest from a
// file may still have it.
func (c collector) secret(name string, s selection) (map[string]File, error) {
	object := c.Desired.Objects.Secrets[name]
	if object == nil {
		return c.absent(s, "Secret", name)
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

// token returns the file with a token.
func (c collector) token(s *v1.ServiceAccountTokenProjection, mode *int32, at string) (map[string]File, error) {
	files, err := c.secret(podspec.TokenName(s), selection{
		path: at, nameField: "path", mode: mode, items: []v1.KeyToPath{{Key: podspec.TokenKey, Path: s.Path}},
	})
	return c.ownedByPod(files), err
}

// trustBundle returns the file with trust anchors, with the owner and mode of a token. It is empty if they do not exist
// and are optional (kubelet: projectedVolumeMounter.collectData).
func (c collector) trustBundle(s *v1.ClusterTrustBundleProjection, mode *int32, at string) (map[string]File, error) {
	files, err := c.configMap(podspec.BundleName(s), selection{
		path: at, nameField: "path", mode: mode, optional: s.Optional,
		items: []v1.KeyToPath{{Key: podspec.BundleKey, Path: s.Path}},
	})
	if err == nil && len(files) == 0 {
		files = map[string]File{s.Path: {Mode: modeOf(mode)}}
	}
	return c.ownedByPod(files), err
}

// ownedByPod gives files to the user of the pod. Other users cannot read them if the pod has a group or one user.
// fsGroup adds its bits later (kubelet: projectedVolumeMounter.collectData).
func (c collector) ownedByPod(files map[string]File) map[string]File {
	user := podspec.FSUser(c.Desired.Pod)
	if user == nil && c.fsGroup() == nil {
		return files
	}
	for path, file := range files {
		file.Mode = tokenMode
		if user != nil {
			file.UID = *user
		}
		files[path] = file
	}
	return files
}

// absent returns an error unless the object is optional. The volume of a missing optional object is empty. Nothing is
// known about an object that was not read yet.
func (c collector) absent(s selection, kind, name string) (map[string]File, error) {
	if _, unread := c.Desired.Unread[podspec.ObjectName{Kind: kind, Name: name}]; s.isOptional() && !unread {
		return nil, nil
	}
	return nil, &UnresolvedError{Path: s.path + "." + s.nameField, Kind: kind, Name: name}
}

// take returns the selected keys as files, or all keys if none is selected.
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
			return nil, &UnresolvedError{
				Path: fmt.Sprintf("%s.items[%d].key", s.path, i),
				Kind: kind,
				Name: name,
				Key:  item.Key,
			}
		}
	}
	return files, nil
}

// defaultMode is the mode of a file without a given one: the API server's default for the field of that name.
const defaultMode = 0o644

// tokenMode is the mode of a token, and of trust anchors, with an owner.
const tokenMode = 0o600

// modeOf returns the first mode that is not nil.
func modeOf(given ...*int32) fs.FileMode {
	for _, mode := range given {
		if mode != nil {
			return fs.FileMode(uint32(*mode)).Perm()
		}
	}
	return defaultMode
}

// downwardAPI returns files with the pod's own fields and the resources of its containers (kubelet:
// downwardapi.CollectData).
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
		return apiresource.ExtractResourceValueByContainerNameAndNodeAllocatable(
			ref, c.Desired.Pod, ref.ContainerName, c.Allocatable)
	}
	return "", errors.New("it has neither fieldRef nor resourceFieldRef")
}
