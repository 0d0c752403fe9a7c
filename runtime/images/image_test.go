package images

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// registryClient answers pulls with the error, or with the reference for the right user.
type registryClient struct {
	runtimeapi.ImageServiceClient
	err   error
	user  string
	mu    sync.Mutex
	asked []string
	calls atomic.Int32
	hold  chan struct{}
}

func (c *registryClient) PullImage(
	ctx context.Context, r *runtimeapi.PullImageRequest, _ ...grpc.CallOption,
) (*runtimeapi.PullImageResponse, error) {
	c.calls.Add(1)
	if c.hold != nil {
		select {
		case <-c.hold:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	c.mu.Lock()
	c.asked = append(c.asked, r.GetAuth().GetUsername())
	c.mu.Unlock()
	if c.err != nil {
		return nil, c.err
	}
	if c.user != "" && r.GetAuth().GetUsername() != c.user {
		return nil, status.Error(codes.Unknown, "pull access denied: 401 Unauthorized")
	}
	return &runtimeapi.PullImageResponse{ImageRef: "sha256:" + r.GetImage().GetImage()}, nil
}

// This is a keychain without credentials.
type emptyKeychain struct{}

func (emptyKeychain) Find(context.Context, string) (Found, error) { return Found{}, nil }

func secret(host, user string) *v1.Secret {
	auth := base64.StdEncoding.EncodeToString([]byte(user + ":pw"))
	return &v1.Secret{
		Type: v1.SecretTypeDockerConfigJson,
		Data: map[string][]byte{v1.DockerConfigJsonKey: fmt.Appendf(nil, `{"auths":{%q:{"auth":%q}}}`, host, auth)},
	}
}

func TestWithTag(t *testing.T) {
	for name, want := range map[string]string{
		"busybox":                       "busybox:latest",
		"registry.local:5000/a/b":       "registry.local:5000/a/b:latest",
		"a:1":                           "a:1",
		"a@sha256:" + hex64:             "a@sha256:" + hex64,
		"registry.local/podctl/demo:1":  "registry.local/podctl/demo:1",
		"registry.local/podctl/demo:v2": "registry.local/podctl/demo:v2",
	} {
		if got, err := WithTag(name); err != nil || got != want {
			t.Errorf("%s: %s %v, want %s", name, got, err, want)
		}
	}
	_, err := WithTag("Not A Name")
	if e := (*Error)(nil); !errors.As(err, &e) || e.Reason != InvalidImageName || !e.Invalid {
		t.Errorf("error %v", err)
	}
}

const hex64 = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

func TestPullTriesCredentialsInTurn(t *testing.T) {
	client := &registryClient{user: "right"}
	p := &Puller{Keychain: emptyKeychain{}}
	ref, err := p.Pull(t.Context(), client, Request{Image: "registry.local/app:1", Secrets: []*v1.Secret{
		secret("elsewhere.local", "other"), secret("registry.local", "wrong"), secret("registry.local/app", "right"),
	}})
	if err != nil || ref.Ref != "sha256:registry.local/app:1" {
		t.Errorf("%s %v", ref.Ref, err)
	}
	for _, user := range client.asked {
		if user == "other" {
			t.Error("credentials of another registry were sent")
		}
	}
}

// TestUnusablePullSecrets checks that secrets without credentials do not keep a pull from trying others or an anonymous
// pull. The error of a failed pull names them.
func TestUnusablePullSecrets(t *testing.T) {
	opaque, empty := secret("registry.local", "other"), secret("registry.local", "other")
	opaque.Name, opaque.Type = "opaque", ""
	empty.Name, empty.Data = "empty", map[string][]byte{v1.DockerConfigKey: []byte("{}")}
	useless := []*v1.Secret{opaque, empty}
	p := &Puller{Keychain: emptyKeychain{}}
	for name, c := range map[string]struct {
		secrets []*v1.Secret
		user    string
	}{
		"others are tried": {append(useless, secret("registry.local", "right")), "right"},
		"or none":          {useless, ""},
	} {
		client := &registryClient{user: c.user}
		_, err := p.Pull(t.Context(), client, Request{Image: "registry.local/app:1", Secrets: c.secrets})
		if err != nil || len(client.asked) != 1 || client.asked[0] != c.user {
			t.Errorf("%s: asked as %q, %v", name, client.asked, err)
		}
	}
	const want = "image registry.local/app:1: something else; the pull secret opaque was ignored: its type is Opaque, " +
		"not kubernetes.io/dockerconfigjson; the pull secret empty was ignored: it has no .dockerconfigjson"
	failing := &registryClient{err: status.Error(codes.Unknown, "something else")}
	if _, err := p.Pull(t.Context(), failing, Request{Image: "registry.local/app:1", Secrets: useless}); err == nil || err.Error() != want {
		t.Errorf("error %v\nwant  %s", err, want)
	}
}

// TestPullSecretThatCannotBeRead checks that it ends the pull, as in the kubelet.
func TestPullSecretThatCannotBeRead(t *testing.T) {
	broken := &v1.Secret{Type: v1.SecretTypeDockercfg, Data: map[string][]byte{v1.DockerConfigKey: []byte("hunter2")}}
	broken.Name = "broken"
	_, err := (&Puller{Keychain: emptyKeychain{}}).Pull(t.Context(), &registryClient{}, Request{
		Image:   "registry.local/app:1",
		Secrets: []*v1.Secret{broken},
	})
	if err == nil || !strings.Contains(err.Error(), "pull secret broken: .dockercfg is not a docker configuration") {
		t.Errorf("error %v", err)
	}
}

func TestPullWithoutCredentialsIsAnonymous(t *testing.T) {
	client := &registryClient{}
	p := &Puller{Keychain: emptyKeychain{}}
	if _, err := p.Pull(t.Context(), client, Request{Image: "registry.local/app:1"}); err != nil ||
		len(client.asked) != 1 || client.asked[0] != "" {
		t.Errorf("asked as %q: %v", client.asked, err)
	}
}

func TestSameImageIsPulledOnce(t *testing.T) {
	client := &registryClient{hold: make(chan struct{})}
	p := &Puller{Keychain: emptyKeychain{}}
	results := make(chan error, 2)
	for range 2 {
		go func() {
			_, err := p.Pull(context.Background(), client, Request{Image: "registry.local/app:1"})
			results <- err
		}()
	}
	for client.calls.Load() == 0 {
	}
	p.mu.Lock()
	waiting := len(p.running)
	p.mu.Unlock()
	close(client.hold)
	for range 2 {
		if err := <-results; err != nil {
			t.Error(err)
		}
	}
	if waiting != 1 {
		t.Errorf("%d pulls were under way for one image", waiting)
	}
}

// TestCancelledPull checks that a cancelled pull is no result for the image: a request that waits for it starts it
// again.
func TestCancelledPull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := &registryClient{hold: make(chan struct{})}
		p := &Puller{Keychain: emptyKeychain{}}
		first, giveUp := context.WithCancel(t.Context())
		results := make(chan error, 3)
		pull := func(ctx context.Context) {
			_, err := p.Pull(ctx, client, Request{Image: "registry.local/app:1"})
			results <- err
		}
		go pull(first)
		synctest.Wait()
		go pull(t.Context())
		go pull(t.Context())
		synctest.Wait()
		giveUp()
		if err := <-results; err == nil {
			t.Error("a pull that was given up ended well")
		}
		synctest.Wait()
		close(client.hold)
		for range 2 {
			if err := <-results; err != nil {
				t.Errorf("who waited has %v", err)
			}
		}
		if n := client.calls.Load(); n != 2 {
			t.Errorf("the image was pulled %d times", n)
		}
	})
}

// TestParallelPullsAreLimited checks the limit for parallel pulls, and that waiting for a slot ends with the context.
func TestParallelPullsAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := &registryClient{hold: make(chan struct{})}
		p := NewPuller(2)
		p.Keychain = emptyKeychain{}
		var group sync.WaitGroup
		pull := func(ctx context.Context, image string) (err error) {
			_, err = p.Pull(ctx, client, Request{Image: "registry.local/" + image})
			return err
		}
		for i := range 5 {
			group.Go(func() {
				if err := pull(t.Context(), fmt.Sprintf("app:%d", i)); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		if n := client.calls.Load(); n != 2 {
			t.Errorf("%d pulls run at the same time", n)
		}
		impatient, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := pull(impatient, "late:1"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a waiting pull gave up with %v", err)
		}
		close(client.hold)
		group.Wait()
		if n := client.calls.Load(); n != 5 {
			t.Errorf("%d images were pulled", n)
		}
	})
}

// TestPullsShareNoCredentials checks that a registry's answer for the credentials of one pod is not used for another
// pod. Secrets for other registries make no difference.
func TestPullsShareNoCredentials(t *testing.T) {
	synctest.Test(t, testSharedCredentials)
}

func testSharedCredentials(t *testing.T) {
	client := &registryClient{user: "right", hold: make(chan struct{})}
	p := &Puller{Keychain: emptyKeychain{}}
	requests := map[string][]*v1.Secret{
		"without credentials":     nil,
		"with others":             {secret("elsewhere.local", "right")},
		"with wrong ones":         {secret("registry.local", "wrong")},
		"with the right ones":     {secret("registry.local", "right")},
		"with the right ones too": {secret("registry.local", "right")},
	}
	outcomes := map[string]error{}
	var mu sync.Mutex
	var group sync.WaitGroup
	for name, secrets := range requests {
		group.Go(func() {
			_, err := p.Pull(t.Context(), client, Request{Image: "registry.local/app:1", Secrets: secrets})
			mu.Lock()
			defer mu.Unlock()
			outcomes[name] = err
		})
	}
	// Three different pulls start, and the others wait for them.
	if synctest.Wait(); client.calls.Load() != 3 {
		t.Errorf("%d pulls run", client.calls.Load())
	}
	close(client.hold)
	group.Wait()
	for name, err := range outcomes {
		if right := strings.Contains(name, "right"); (err == nil) != right {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestErrorsHaveAdvice(t *testing.T) {
	cases := map[string]struct {
		err         error
		wantMessage string
		passing     bool
	}{
		"absent":      {status.Error(codes.NotFound, `failed to resolve reference "r/a:1": r/a:1: not found`), "does not have it", false},
		"denied":      {status.Error(codes.Unknown, "unexpected status: 401 Unauthorized"), "denies access", false},
		"unreachable": {status.Error(codes.Unknown, "dial tcp 127.0.0.1:5000: connect: connection refused"), "cannot be reached", true},
		"no space":    {status.Error(codes.Unknown, "write /x: no space left on device"), "no space left", false},
		"plain http":  {status.Error(codes.Unknown, "http: server gave HTTP response to HTTPS client"), "plain http", false},
		"unknown":     {status.Error(codes.Unknown, "something else"), "something else", false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := (&Puller{Keychain: emptyKeychain{}}).Pull(t.Context(), &registryClient{err: c.err}, Request{Image: "r.local/a:1"})
			var e *Error
			if !errors.As(err, &e) || !strings.Contains(e.Error(), c.wantMessage) || e.Passing != c.passing {
				t.Errorf("%v, passing %t", err, e != nil && e.Passing)
			}
			if strings.Contains(e.Error(), "rpc error") {
				t.Errorf("noise: %v", e)
			}
		})
	}
}

func TestErrorsHoldNoPassword(t *testing.T) {
	client := &registryClient{user: "right"}
	_, err := (&Puller{Keychain: emptyKeychain{}}).Pull(t.Context(), client, Request{
		Image: "registry.local/app:1", Secrets: []*v1.Secret{secret("registry.local", "wrong")},
	})
	if err == nil || strings.Contains(err.Error(), "pw") ||
		strings.Contains(err.Error(), base64.StdEncoding.EncodeToString([]byte("wrong:pw"))) {
		t.Errorf("error %v", err)
	}
}
