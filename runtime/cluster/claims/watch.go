package claims

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/cluster/apiclient"
	"github.com/podctl/podctl/runtime/cluster/apierror"
	"github.com/podctl/podctl/runtime/sleep"
	"github.com/podctl/podctl/runtime/state"
)

// firstPause and longestPause are the pauses between two reads. Right after a pod was bound to this node, the API
// server may refuse its claims for a moment. A kubelet reads them every 10 s (backOffPeriod).
const firstPause, longestPause = 200 * time.Millisecond, 10 * time.Second

// Watcher reads claims of pods. All fields are required.
type Watcher struct {
	// Client is the REST client of core/v1.
	Client rest.Interface
	// Pod returns the pod with a uid as the API server has it, or nil if it is not known.
	Pod func(types.UID) *v1.Pod
	// Labels returns the labels of the Node. known is false if it is not registered yet.
	Labels func() (labels map[string]string, known bool)
	// Confirm is called before each read. Its error is that of the read.
	Confirm func(ctx context.Context) error
	// InUse reports whether a pod other than that of a key uses the claim of the key on this machine. Turn is locked
	// while InUse is called and until its pod uses the claim, so that only one of several pods gets it.
	InUse func(state.ObjectKey) bool
	Turn  *sync.Mutex
}

// bound is the volume of a claim.
type bound struct {
	*podspec.HostVolume

	// single is set if only one pod may use it.
	single bool
}

// Sink receives the results for one claim of a pod.
type Sink interface {
	// Set records the volume of the claim, or why the pod cannot use it.
	Set(*podspec.Object)
	// Fail records why the claim could not be read.
	Fail(error)
}

// Watch reads one claim of a pod and its volume until the pod can use them, or until the context ends. The key is that
// of objects.CopyKey.
func (w Watcher) Watch(ctx context.Context, key state.ObjectKey, sink Sink) {
	for pause := firstPause; ctx.Err() == nil; pause = min(2*pause, longestPause) {
		volume, f, err := w.read(ctx, key)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			sink.Fail(err)
		case f != nil:
			sink.Set(&podspec.Object{Claim: claimOf(key), Unusable: f.unusable()})
		case w.take(key, sink, volume):
			return
		}
		_ = sleep.For(ctx, max(pause, apierror.RetryAfter(err))) // the loop checks the context
	}
}

// take records the volume of a claim, unless another pod uses a volume that is for one pod only (kubelet:
// GenerateMountVolumeFunc).
func (w Watcher) take(key state.ObjectKey, sink Sink, volume *bound) (taken bool) {
	w.Turn.Lock()
	defer w.Turn.Unlock()
	if volume.single && w.InUse(key) {
		f := mountFault("MountVolume.SetUp failed", volume.Name,
			"volume uses the ReadWriteOncePod access mode and is already in use by another pod")
		sink.Set(&podspec.Object{Claim: claimOf(key), Unusable: f.unusable()})
		return false
	}
	sink.Set(&podspec.Object{Claim: claimOf(key), Volume: volume.HostVolume})
	return true
}

// claimOf returns the object of a key.
func claimOf(key state.ObjectKey) *v1.PersistentVolumeClaim {
	return &v1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
}

// read reads a claim and its volume once. An error is no decision about the claim.
func (w Watcher) read(ctx context.Context, key state.ObjectKey) (*bound, *fault, error) {
	u, err := w.use(key)
	if err == nil {
		err = w.Confirm(ctx)
	}
	if err != nil {
		return nil, nil, err
	}
	claim, err := get[v1.PersistentVolumeClaim](ctx, w.Client.Get().
		Namespace(key.Namespace).Resource("persistentvolumeclaims"), u.claim)
	if apierror.IsAbsent(err) {
		return nil, u.claimFault("failed to fetch PVC from API server: " + err.Error()), nil
	}
	if err != nil {
		return nil, nil, err
	}
	if claim.Namespace != key.Namespace || claim.Name != u.claim {
		return nil, nil, apierror.RejectedError{Reason: "the API server has sent another claim"}
	}
	if f := u.checkClaim(claim); f != nil {
		return nil, f, nil
	}
	return w.readVolume(ctx, u, claim)
}

func (w Watcher) readVolume(
	ctx context.Context, u use, claim *v1.PersistentVolumeClaim,
) (*bound, *fault, error) {
	name := claim.Spec.VolumeName
	volume, err := get[v1.PersistentVolume](ctx, w.Client.Get().Resource("persistentvolumes"), name)
	if apierror.IsAbsent(err) {
		return nil, u.claimFault("failed to fetch PV " + name + " from API server: " + err.Error()), nil
	}
	if err != nil {
		return nil, nil, err
	}
	if volume.Name != name {
		return nil, nil, apierror.RejectedError{Reason: "the API server has sent another volume"}
	}
	labels, known := w.Labels()
	if hasAffinity(volume) && !known {
		return nil, nil, apierror.RejectedError{Reason: "the labels of the Node are not known yet"}
	}
	path, f := u.bind(claim, volume, labels)
	if f != nil {
		return nil, f, nil
	}
	return &bound{path, slices.Equal(volume.Spec.AccessModes, onePod())}, nil, nil
}

// onePod returns the access modes of a volume that only one pod may use. With others, the mode of a pod is unknown.
func onePod() []v1.PersistentVolumeAccessMode {
	return []v1.PersistentVolumeAccessMode{v1.ReadWriteOncePod}
}

// use returns what a key stands for.
func (w Watcher) use(key state.ObjectKey) (use, error) {
	uid, name := podspec.UnbindName(key.Name)
	pod := w.Pod(uid)
	if pod == nil {
		return use{}, apierror.RejectedError{Reason: "the API server has not sent the pod"}
	}
	for i := range pod.Spec.Volumes {
		claim := podspec.ClaimName(pod, &pod.Spec.Volumes[i])
		if volumes := podspec.ClaimVolumes(pod, claim); len(volumes) > 0 && podspec.ClaimKey(claim) == name {
			return use{pod, claim, volumes}, nil
		}
	}
	return use{}, apierror.RejectedError{Reason: "the pod has no such claim"}
}

// get reads an object. One with a name that no object can have does not exist.
func get[T any, P apiclient.Object[T]](ctx context.Context, r *rest.Request, name string) (*T, error) {
	err := r.Name(name).Error()
	if err == nil && len(name) > validation.DNS1123SubdomainMaxLength {
		err = errors.New("the name is too long")
	}
	if err != nil {
		return nil, &apierrors.StatusError{ErrStatus: metav1.Status{
			Reason: metav1.StatusReasonNotFound, Code: http.StatusNotFound, Message: err.Error(),
		}}
	}
	return apiclient.Do[T, P](ctx, r)
}
