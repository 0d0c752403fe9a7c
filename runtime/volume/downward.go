package volume

import (
	"errors"
	"fmt"

	v1 "k8s.io/api/core/v1"
	apiresource "k8s.io/kubernetes/pkg/api/v1/resource"
	"k8s.io/kubernetes/pkg/fieldpath"
)

// downwardAPI makes files of the pod's own fields and of its containers'
// resources (kubelet: downwardapi.CollectData).
func (c Context) downwardAPI(items []v1.DownwardAPIVolumeFile, mode *int32, at string) (map[string]File, error) {
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

func (c Context) downwardValue(item *v1.DownwardAPIVolumeFile) (string, error) {
	switch {
	case item.FieldRef != nil:
		return fieldpath.ExtractFieldPathAsString(c.Desired.Pod, item.FieldRef.FieldPath)
	case item.ResourceFieldRef != nil:
		ref := item.ResourceFieldRef
		return apiresource.ExtractResourceValueByContainerNameAndNodeAllocatable(ref, c.Desired.Pod, ref.ContainerName, c.Allocatable)
	}
	return "", errors.New("it has neither fieldRef nor resourceFieldRef")
}
