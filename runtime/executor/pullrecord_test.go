package executor

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/podspec/podspectest"
	"github.com/podctl/podctl/runtime/images"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/plan"
	"github.com/podctl/podctl/runtime/runtimetest"
)

// pullLab applies pods of the API server with the image private.local/app:1, which the registry gives only to the user
// "right".
type pullLab struct{ *lab }

// pod returns the next pod, with the credentials of a user; without a user it has no pull secret.
func (l pullLab) pod(name, policy, secret, user string) *podspec.Desired {
	text := strings.NewReplacer("name: web", "name: "+name, "registry.local/app:1", "private.local/app:1").Replace(podspectest.Minimal)
	text = strings.Replace(text, "image: ", "imagePullPolicy: "+policy+"\n    image: ", 1)
	if user != "" {
		text = strings.Replace(text, "spec:", "spec:\n  imagePullSecrets: [{name: "+secret+"}]", 1)
	}
	d := podspectest.FromAPI(l.t, text)
	if user != "" {
		auth := base64.StdEncoding.EncodeToString([]byte(user + ":pw"))
		d.Objects.Secrets = map[string]*v1.Secret{secret: {
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: secret, UID: types.UID("uid-" + secret)},
			Type:       v1.SecretTypeDockerConfigJson,
			Data:       map[string][]byte{v1.DockerConfigJsonKey: fmt.Appendf(nil, `{"auths":{"private.local":{"auth":%q}}}`, auth)},
		}}
	}
	return d
}

// start makes one pass over a pod. It returns whether it pulled the image, and whether the pod can use it. Containers do
// not start, because the lab has no Services of a cluster.
func (l pullLab) start(d *podspec.Desired) string {
	l.t.Helper()
	return l.startUntil(l.t.Context(), d)
}

// startUntil is start with a context for the pass.
func (l pullLab) startUntil(ctx context.Context, d *podspec.Desired) string {
	l.t.Helper()
	in, s, err := l.observer.Input(ctx, model.RefOf(d.Pod), d, plan.Options{})
	if err != nil {
		l.t.Fatal(err)
	}
	p := &planned{l.lab, in, plan.Make(in), s}
	pulls := ""
	for i := range p.plan.Steps {
		if p.plan.Steps[i].Kind == plan.PullImage {
			pulls = "pull " + string(p.plan.Steps[i].Reason) + " "
		}
	}
	for i := range p.plan.Holds {
		return pulls + "held " + string(p.plan.Holds[i].Reason) + ": " + p.plan.Holds[i].Message
	}
	outcome, err := l.executor.Run(ctx, p.in, p.plan, p.snapshot, Options{ClusterPods: true, Report: l.note})
	if ctx.Err() != nil {
		return pulls + "cancelled"
	}
	if err != nil {
		l.t.Fatal(err)
	}
	for i := range outcome.Failed {
		if outcome.Failed[i].Step.Kind == plan.PullImage {
			return pulls + "failed " + string(outcome.Failed[i].Reason)
		}
	}
	return pulls + "usable"
}

func (l pullLab) records(dir string) (n int) {
	entries, err := os.ReadDir(filepath.Join(l.layout.Root, "image_manager", dir))
	if err != nil && !os.IsNotExist(err) {
		l.t.Fatal(err)
	}
	return len(entries)
}

// TestPrivateImages checks that a pod without the right pull secret cannot use an image that another pod has pulled.
func TestPrivateImages(t *testing.T) {
	l := pullLab{newLab(t)}
	const unverified, never = "pull ImageUnverified ", `held ErrImageNeverPull: Container image "private.local/app:1" is not ` +
		"present with pull policy of Never"
	check := func(want string, d *podspec.Desired) {
		t.Helper()
		if got := l.start(d); got != want {
			t.Errorf("%s: %s, want %s", d.Pod.Name, got, want)
		}
	}
	check("pull ImageAbsent failed ErrImagePull", l.pod("first", "IfNotPresent", "one", "wrong"))
	if n := l.records("pulled") + l.records("pulling"); n != 0 {
		t.Errorf("%d records of a pull that failed", n)
	}
	check("pull ImageAbsent usable", l.pod("owner", "IfNotPresent", "one", "right"))
	if done, begun := l.records("pulled"), l.records("pulling"); done != 1 || begun != 0 {
		t.Errorf("%d records and %d marks of a pull that succeeded", done, begun)
	}
	check("usable", l.pod("same-secret", "IfNotPresent", "one", "right"))
	check("usable", l.pod("same-credentials", "Never", "two", "right"))
	check(unverified+"failed ErrImagePull", l.pod("no-secret", "IfNotPresent", "", ""))
	check(unverified+"failed ErrImagePull", l.pod("wrong-secret", "IfNotPresent", "two", "wrong"))
	check(never, l.pod("never", "Never", "", ""))
	check(never, l.pod("never-wrong", "Never", "two", "wrong"))
	check("usable", l.pod("rotated", "Never", "one", "changed"))
	p := l.plan(model.PodRef{}, strings.Replace(podspectest.Minimal, "registry.local/app:1", "private.local/app:1", 1))
	if _, err := p.run(Options{}); err != nil || len(p.plan.Holds) != 0 {
		t.Errorf("a pod of a file: %v, %v", err, p.plan.Holds)
	}
	if err := os.RemoveAll(filepath.Join(l.layout.Root, "image_manager")); err != nil {
		t.Fatal(err)
	}
	check("usable", l.pod("preloaded", "Never", "", ""))
}

// TestPullsWithoutRecord checks that an image is not taken for a preloaded one if it was pulled, but podctl could not
// record with which credentials.
func TestPullsWithoutRecord(t *testing.T) {
	const other = "pull ImageUnverified failed ErrImagePull"
	for name, c := range map[string]struct {
		pull func(l pullLab) string
		want string
	}{
		"the image cannot be looked up": {pullLab.pullUnseen, "pull ImageAbsent failed ImageInspectError"},
		"the record cannot be written":  {pullLab.pullUnwritten, "pull PullAlways usable"},
		"the pull was cancelled":        {pullLab.pullCancelled, "pull ImageAbsent cancelled"},
	} {
		l := pullLab{newLab(t)}
		if got := c.pull(l); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
		if done, begun := l.records("pulled"), l.records("pulling"); begun != 1 {
			t.Errorf("%s: %d records and %d marks", name, done, begun)
		}
		if got := l.start(l.pod("other", "IfNotPresent", "", "")); got != other {
			t.Errorf("%s: a pod without the pull secret: %s", name, got)
		}
	}
}

// pullUnseen pulls the image, which the runtime then fails to describe.
func (l pullLab) pullUnseen() string {
	pulled := false
	l.server.Fail(runtimetest.Fault{Method: "PullImage", Times: 1, Only: func(any) bool { pulled = true; return false }})
	l.server.Fail(runtimetest.Fault{
		Method: "ImageStatus", Times: 1, Err: errors.New("injected failure"), Only: func(any) bool { return pulled },
	})
	return l.start(l.pod("owner", "IfNotPresent", "one", "right"))
}

// pullUnwritten pulls the image while a directory is in the way of its record.
func (l pullLab) pullUnwritten() string {
	l.t.Helper()
	owner := l.pod("owner", "Always", "one", "right")
	l.start(owner)
	found, err := filepath.Glob(filepath.Join(l.layout.Root, "image_manager", "pulled", "*"))
	if err != nil || len(found) != 1 {
		l.t.Fatal(found, err)
	}
	if err = errors.Join(os.Remove(found[0]), os.MkdirAll(found[0]+".tmp/x", 0o700)); err != nil {
		l.t.Fatal(err)
	}
	return l.start(owner)
}

// pullCancelled pulls the image and gives up. The runtime does not notice, and stores the image.
func (l pullLab) pullCancelled() string {
	l.t.Helper()
	ctx := l.server.ExpireAt(l.t.Context(), "", "PullImage", 1)
	result := l.startUntil(ctx, l.pod("owner", "IfNotPresent", "one", "right"))
	for range 1000 {
		if _, stored, err := images.Status(l.t.Context(), l.client.Images, "private.local/app:1"); stored || err != nil {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	return result
}
