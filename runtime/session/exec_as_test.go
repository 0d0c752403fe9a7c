package session

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/containerd"
)

func TestFindUser(t *testing.T) {
	const passwd = "root:x:0:0::/root:/bin/sh\nweb:x:33:34::/srv:/bin/sh\n"
	const group = "root:x:0:\nweb:x:34:\nlogs:x:40:web\n"
	fsGroup := int64(40)
	pod := &podspec.Desired{Pod: &v1.Pod{
		Spec: v1.PodSpec{SecurityContext: &v1.PodSecurityContext{SupplementalGroups: []int64{9}, FSGroup: &fsGroup}},
	}}
	for name, want := range map[string]*containerd.User{
		"web":       {UID: 33, GID: 34, AdditionalGroups: []uint32{40, 9}},
		"33":        {UID: 33, GID: 34, AdditionalGroups: []uint32{40, 9}},
		"web:root":  {UID: 33, GID: 0, AdditionalGroups: []uint32{9, 40}},
		"1000":      {UID: 1000, GID: 0, AdditionalGroups: []uint32{9, 40}},
		"1000:2000": {UID: 1000, GID: 2000, AdditionalGroups: []uint32{9, 40}},
		"nobody":    nil,
		"web:gone":  nil,
		"-1":        nil,
	} {
		got, err := findUser(name, passwd, group, podGroups(pod))
		if diff := cmp.Diff(want, got); diff != "" || (err != nil) != (want == nil) {
			t.Errorf("%s: %v (-want +got)\n%s", name, err, diff)
		}
	}
	if groups := podGroups(&podspec.Desired{Pod: &v1.Pod{}}); groups != nil {
		t.Error(groups)
	}
}
