package criconfig

import (
	"fmt"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
)

// TestFileValue checks that an optional variable may be missing in its file, or have no file.
func TestFileValue(t *testing.T) {
	const there, absent = "there", "absent"
	in := &ContainerInput{Files: map[FileKey]string{{"v", there, "K"}: "v", {"v", there, "E"}: ""}}
	for _, c := range []struct {
		path, key string
		optional  bool
		want      string
		set       bool
		fault     string
	}{
		{path: there, key: "K", want: "v", set: true},
		{path: there, key: "E", fault: "file there in volume v has no key E"},
		{path: there, key: "E", optional: true},
		{path: absent, key: "K", fault: "file absent does not exist in volume v"},
		{path: absent, key: "K", optional: true},
	} {
		t.Run(fmt.Sprintf("%s %s %t", c.path, c.key, c.optional), func(t *testing.T) {
			got, set, err := fileValue(in, &v1.FileKeySelector{VolumeName: "v", Path: c.path, Key: c.key, Optional: &c.optional})
			if got != c.want || set != c.set || (err != nil) != (c.fault != "") || (err != nil && !strings.Contains(err.Error(), c.fault)) {
				t.Errorf("%q %t %v", got, set, err)
			}
		})
	}
}
