package criconfig

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/podctl/podctl/podspec"
)

// fileValue returns the value of a key in an environment file that an init container wrote into an emptyDir; false if
// it is optional and absent.
func fileValue(in *ContainerInput, ref *v1.FileKeySelector) (string, bool, error) {
	value, ok := in.Files[KeyOf(ref)]
	switch {
	case value != "" || ptr.Deref(ref.Optional, false):
		return value, value != "", nil
	case !ok:
		return "", false, fmt.Errorf("file %s does not exist in volume %s", ref.Path, ref.VolumeName)
	}
	return "", false, fmt.Errorf("file %s in volume %s has no key %s", ref.Path, ref.VolumeName, ref.Key)
}

// KeyOf returns the key in a file that a variable refers to.
func KeyOf(ref *v1.FileKeySelector) FileKey {
	return FileKey{Volume: ref.VolumeName, Path: ref.Path, Key: ref.Key}
}

// Placeholders returns one value for all variables of a container that come from files.
func Placeholders(ref podspec.ContainerRef, value string) map[FileKey]string {
	files := map[FileKey]string{}
	for i := range ref.Env {
		if from := ref.Env[i].ValueFrom; from != nil && from.FileKeyRef != nil {
			files[KeyOf(from.FileKeyRef)] = value
		}
	}
	return files
}
