package images

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/distribution/reference"
	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/imageaccess"
)

// WithTag adds the tag latest to a reference without tag and digest (kubelet: applyDefaultImageTag). It adds nothing
// else: the runtime decides about the registry of a short name.
func WithTag(name string) (string, error) {
	ref, err := reference.ParseAnyReference(name)
	if err != nil {
		return "", &Error{
			Reason:  InvalidImageName,
			Invalid: true,
			Image:   name,
			Hint:    "is not a valid image name: " + err.Error(),
			Err:     err,
		}
	}
	_, tagged := ref.(reference.Tagged)
	_, digested := ref.(reference.Digested)
	if tagged || digested || !isNamed(ref) {
		return name, nil
	}
	return name + ":latest", nil
}

// SameReference reports whether two references mean the same image: nginx:latest and docker.io/library/nginx:latest.
// One without tag and digest matches only itself.
func SameReference(a, b string) bool {
	return a == b || (fullName(a) != "" && fullName(a) == fullName(b))
}

func fullName(name string) string {
	ref, err := reference.ParseNormalizedNamed(name)
	if err != nil || reference.IsNameOnly(ref) {
		return ""
	}
	return ref.String()
}

func isNamed(ref reference.Reference) bool {
	_, named := ref.(reference.Named)
	return named
}

// Info is the runtime's data about an image.
type Info struct {
	// Reference is the requested reference.
	Reference string
	ID        string
	// User is the user of the image, a number or a name; empty means root.
	User string
	Size uint64
	// RepoTags are the image's names with tags. RepoDigests are the names with digests under which it was pulled.
	RepoTags, RepoDigests []string
}

// Status returns the runtime's data about an image, or false if it does not have it.
func Status(ctx context.Context, client runtimeapi.ImageServiceClient, name string) (Info, bool, error) {
	tagged, err := WithTag(name)
	if err != nil {
		return Info{}, false, err
	}
	reply, err := client.ImageStatus(ctx, &runtimeapi.ImageStatusRequest{Image: &runtimeapi.ImageSpec{Image: tagged}})
	if err != nil {
		return Info{}, false, &Error{Reason: ImageInspectError, Image: name, Err: err}
	}
	img := reply.GetImage()
	if img == nil {
		return Info{}, false, nil
	}
	return Info{
		Reference: tagged, ID: img.GetId(), User: UserOf(img), Size: img.GetSize(),
		RepoTags: img.GetRepoTags(), RepoDigests: img.GetRepoDigests(),
	}, true, nil
}

// UserOf returns the user of an image: its number, or else its name (kubelet: getImageUser).
func UserOf(img *runtimeapi.Image) string {
	if uid := img.GetUid(); uid != nil {
		return strconv.FormatInt(uid.GetValue(), 10)
	}
	return img.GetUsername()
}

// Request is one image to pull.
type Request struct {
	Image string
	// Annotations are the pod's, which the kubelet passes to the runtime.
	Annotations   map[string]string
	SandboxConfig *runtimeapi.PodSandboxConfig
	// Secrets are the pod's pull secrets, which are tried first.
	Secrets []*v1.Secret
}

// Puller pulls images. Concurrent requests for the same image with the same pull secrets share one pull. The zero value
// has no limit for parallel pulls.
type Puller struct {
	mu      sync.Mutex
	running map[sharing]*pulling
	// Keychain finds the credentials of the user; nil means the usual places.
	Keychain Keychain
	// slots limits the parallel pulls; nil means no limit.
	slots chan struct{}
}

// NewPuller returns a Puller with a limit for parallel pulls (kubelet: maxParallelImagePulls). Zero means no limit.
func NewPuller(parallel int) *Puller {
	p := &Puller{}
	if parallel > 0 {
		p.slots = make(chan struct{}, parallel)
	}
	return p
}

// sharing identifies pulls that can be shared. With other credentials the registry may answer differently. It holds
// only a hash of the credentials.
type sharing struct {
	image       string
	credentials [sha256.Size]byte
}

func sharingOf(name string, own []credential) sharing {
	var text []byte
	for _, one := range own {
		auth := one.auth
		text = fmt.Appendf(text, "%q %q %q %q %q %q\n", auth.GetServerAddress(), auth.GetUsername(), auth.GetPassword(),
			auth.GetAuth(), auth.GetIdentityToken(), auth.GetRegistryToken())
	}
	return sharing{image: name, credentials: sha256.Sum256(text)}
}

// pulling is a pull that other requests may wait for.
type pulling struct {
	done chan struct{}
	ref  string
	// used is the position of the credential that worked. Requests that share a pull have the same credentials of their
	// own in the same order, but possibly from different secrets.
	used int
	err  error
	// cancelled is set if the request that started the pull was cancelled, which is no result for the image.
	cancelled bool
}

// Reply is the result of a pull.
type Reply struct {
	// Ref is the runtime's reference to the image.
	Ref string
	// Secret is the pull secret whose credentials worked; nil if the pull was anonymous, or used those of the machine.
	Secret *imageaccess.Secret
}

// Pull pulls an image. It tries credentials one after the other until one works. Without any, the pull is anonymous.
func (p *Puller) Pull(ctx context.Context, client runtimeapi.ImageServiceClient, r Request) (Reply, error) {
	name, err := WithTag(r.Image)
	if err != nil {
		return Reply{}, err
	}
	own, err := fromSecrets(name, r.Secrets)
	if err != nil {
		return Reply{}, noCredentials(r.Image, err)
	}
	shared := sharingOf(name, own)
	for {
		flight, mine := p.join(shared)
		if mine {
			flight.ref, flight.used, flight.err = p.pullInTurn(ctx, client, name, own, r)
			flight.cancelled = flight.err != nil && ctx.Err() != nil
			p.leave(shared, flight)
			return flight.reply(own)
		}
		select {
		case <-flight.done:
			if !flight.cancelled {
				return flight.reply(own)
			}
		case <-ctx.Done():
			return Reply{}, context.Cause(ctx)
		}
	}
}

// reply returns the result for a request with these credentials of its own.
func (f *pulling) reply(own []credential) (Reply, error) {
	if f.err != nil {
		return Reply{}, f.err
	}
	r := Reply{Ref: f.ref}
	if f.used < len(own) {
		r.Secret = own[f.used].secret
	}
	return r, nil
}

// pullInTurn waits for a free slot and pulls.
func (p *Puller) pullInTurn(
	ctx context.Context, client runtimeapi.ImageServiceClient, name string, own []credential, r Request,
) (ref string, used int, err error) {
	if p.slots != nil {
		select {
		case p.slots <- struct{}{}:
			defer func() { <-p.slots }()
		case <-ctx.Done():
			return "", 0, context.Cause(ctx)
		}
	}
	return p.pull(ctx, client, name, own, r)
}

// noCredentials reports that the credentials for an image could not be determined.
func noCredentials(image string, err error) error {
	return &Error{Reason: ErrImagePull, Image: image, Hint: err.Error(), Err: err}
}

func (p *Puller) join(what sharing) (flight *pulling, mine bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if other, ok := p.running[what]; ok {
		return other, false
	}
	if p.running == nil {
		p.running = map[sharing]*pulling{}
	}
	flight = &pulling{done: make(chan struct{})}
	p.running[what] = flight
	return flight, true
}

func (p *Puller) leave(what sharing, flight *pulling) {
	p.mu.Lock()
	delete(p.running, what)
	p.mu.Unlock()
	close(flight.done)
}

// pull also returns the position of the credential that worked.
func (p *Puller) pull(
	ctx context.Context, client runtimeapi.ImageServiceClient, name string, own []credential, r Request,
) (ref string, used int, err error) {
	credentials, unused, err := p.credentials(ctx, name, own)
	if err != nil {
		return "", 0, noCredentials(r.Image, err)
	}
	var failures []*Error
	for i, one := range credentials {
		reply, err := client.PullImage(ctx, &runtimeapi.PullImageRequest{
			Image:         &runtimeapi.ImageSpec{Image: name, Annotations: r.Annotations},
			Auth:          one.auth,
			SandboxConfig: r.SandboxConfig,
		})
		if err == nil {
			return reply.GetImageRef(), i, nil
		}
		failures = append(failures, explain(r.Image, err))
	}
	failure := allFailed(r.Image, failures)
	if left := append(leftOut(r.Secrets), unused...); len(left) > 0 {
		failure.Hint = cmp.Or(failure.Hint, failure.Err.Error()) + "; " + strings.Join(left, "; ")
	}
	return "", 0, failure
}

// leftOut names the pull secrets without credentials, which may be the reason for a failed pull.
func leftOut(secrets []*v1.Secret) []string {
	var texts []string
	for _, secret := range secrets {
		if fault := podspec.PullSecretFault(secret); fault != "" {
			texts = append(texts, fmt.Sprintf("the pull secret %s was ignored: %s", secret.Name, fault))
		}
	}
	return texts
}

// allFailed joins the failures of several credentials, which are often the same.
func allFailed(name string, failures []*Error) *Error {
	if len(failures) == 1 {
		return failures[0]
	}
	var texts []string
	var causes []error
	passing := true
	for _, e := range failures {
		if text := e.Error(); len(texts) == 0 || texts[len(texts)-1] != text {
			texts = append(texts, text)
		}
		causes = append(causes, e)
		passing = passing && e.Passing
	}
	return &Error{
		Reason: ErrImagePull, Image: name, Passing: passing, Err: errors.Join(causes...),
		Hint: fmt.Sprintf("%d credentials were tried: %s", len(failures), strings.Join(texts, "; ")),
	}
}
