package image

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/podctl/podctl/runtime/images"
	"github.com/podctl/podctl/runtime/model"
)

func TestImageView(t *testing.T) {
	hex := strings.Repeat("0123456789abcdef", 4)
	pod := func(name string) model.PodRef { return model.PodRef{Namespace: "default", Name: name} }
	found := []*images.Image{
		{
			ID:      "sha256:" + hex,
			Tags:    []string{"r.local/a:1", "r.local/a:2"},
			Digests: []string{"r.local/a@sha256:" + hex, "r.local/b@sha256:" + hex},
			Size:    1024,
			UsedBy:  []images.User{{Pod: pod("web"), Container: "x"}, {Pod: pod("web"), Container: "y"}},
			NamedBy: []model.PodRef{pod("job")},
		},
		{ID: "sha256:" + hex, Pinned: true},
	}
	want := `REPOSITORY   TAG      DIGEST                IMAGE ID       SIZE   USED BY
r.local/a    1        sha256:0123456789ab   0123456789ab   1KiB   default/job +1
r.local/a    2        sha256:0123456789ab   0123456789ab   1KiB   default/job +1
r.local/b    <none>   sha256:0123456789ab   0123456789ab   1KiB   default/job +1
<none>       <none>   <none>                0123456789ab   0B     the runtime
`
	var b bytes.Buffer
	if err := (&imageView{}).write(&b, found); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
