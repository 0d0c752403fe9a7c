package references

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/cluster/apitest"
	"github.com/podctl/podctl/runtime/objects"
	"github.com/podctl/podctl/runtime/state"
)

// podWith returns a pod of the API server with a ConfigMap in a volume and one in the environment; empty for none.
func podWith(uid, inVolume, inEnv string) *podspec.Desired {
	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "pod-" + uid, UID: types.UID(uid)},
		Spec:       v1.PodSpec{Containers: []v1.Container{{Name: "c", Image: "i"}}},
	}
	if inVolume != "" {
		vol := v1.Volume{Name: "v"}
		vol.ConfigMap = &v1.ConfigMapVolumeSource{LocalObjectReference: v1.LocalObjectReference{Name: inVolume}}
		pod.Spec.Volumes = []v1.Volume{vol}
		pod.Spec.Containers[0].VolumeMounts = []v1.VolumeMount{{Name: "v", MountPath: "/v"}}
	}
	if inEnv != "" {
		pod.Spec.Containers[0].EnvFrom = []v1.EnvFromSource{{ConfigMapRef: &v1.ConfigMapEnvSource{
			LocalObjectReference: v1.LocalObjectReference{Name: inEnv},
		}}}
	}
	d := podspec.New(pod, podspec.OwnerAPI, pod.UID)
	d.Owner = podspec.OwnerAPI
	return d
}

func configMap(name, text string) *podspec.Object {
	return &podspec.Object{ConfigMap: &v1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name, ResourceVersion: "7"}, Data: map[string]string{"key": text},
	}}
}

func keyNamed(name string) state.ObjectKey {
	return state.ObjectKey{Namespace: "a", Kind: podspec.KindConfigMap, Name: name}
}

// lab is References whose watches do what the test says.
type lab struct {
	*References

	t      *testing.T
	layout state.Layout
	log    *apitest.Log
	stored []*podspec.Desired
	// unreadable makes a record unreadable.
	unreadable bool

	mu    sync.Mutex
	sinks map[string]*Sink
	// begun and ended are the names of watched objects, in order.
	begun, ended []string
	woken        []string
	over         map[types.UID]bool
	stop         context.CancelFunc
	done         chan struct{}
}

func newLab(t *testing.T, root string) *lab {
	l := &lab{
		t: t, layout: state.Layout{Root: filepath.Join(root, "state"), LogRoot: filepath.Join(root, "logs")},
		sinks: map[string]*Sink{}, over: map[types.UID]bool{}, log: &apitest.Log{},
	}
	if err := l.layout.Prepare(); err != nil {
		t.Fatal(err)
	}
	l.References = New(Settings{
		Copies: objects.Copies{Dir: state.ClusterObjects(l.layout)},
		Watch: func(ctx context.Context, key state.ObjectKey, sink *Sink) {
			l.change(func() { l.begun, l.sinks[key.Name] = append(l.begun, key.Name), sink })
			<-ctx.Done()
			l.change(func() { l.ended = append(l.ended, key.Name) })
		},
		Stored:   func() ([]*podspec.Desired, bool) { return l.stored, !l.unreadable },
		HasEnded: func(uid types.UID) bool { l.mu.Lock(); defer l.mu.Unlock(); return l.over[uid] },
		Wake:     func(uid types.UID) { l.change(func() { l.woken = append(l.woken, string(uid)) }) },
		Now:      time.Now,
		Log:      slog.New(slog.NewTextHandler(l.log, nil)),
	})
	return l
}

// run runs the references until the end of the test, or until end is called.
func (l *lab) run() *lab {
	ctx, stop := context.WithCancel(context.Background())
	l.stop, l.done = stop, make(chan struct{})
	go func() {
		defer close(l.done)
		l.Run(ctx)
	}()
	synctest.Wait()
	return l
}

func (l *lab) end() {
	l.stop()
	<-l.done
}

func (l *lab) change(do func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	do()
}

// sink returns the sink of the watch of an object; nil if there is none.
func (l *lab) sink(name string) *Sink {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.sinks[name]
}

// answer answers the watch of an object.
func (l *lab) answer(name string, o *podspec.Object) {
	l.t.Helper()
	synctest.Wait()
	sink := l.sink(name)
	if sink == nil {
		l.t.Fatalf("%s is not watched", name)
	}
	sink.Set(o)
}

// answerAfter answers the watches of objects once all goroutines wait.
func (l *lab) answerAfter(pause time.Duration, all ...*podspec.Object) {
	go func() {
		apitest.Sleep(pause)
		for _, o := range all {
			l.answer(o.Meta().Name, o)
		}
	}()
}

// pass completes a pod, and returns the contents of its ConfigMaps and how long that took. Unread ones are "?".
func (l *lab) pass(d *podspec.Desired) string {
	l.t.Helper()
	begun := time.Now()
	with, err := l.Complete(l.t.Context(), d)
	if err != nil {
		l.t.Fatal(err)
	}
	var found []string
	for name, cm := range with.Objects.ConfigMaps {
		found = append(found, name+"="+cm.Data["key"])
	}
	for name, why := range with.Unread {
		found = append(found, strings.TrimSuffix(name.Name+"=? "+why.Reason, " "))
	}
	slices.Sort(found)
	took := time.Since(begun)
	synctest.Wait()
	return strings.Join(append(found, took.String()), " ")
}

func (l *lab) want(what string, got, want any) {
	l.t.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		l.t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// wantCopy checks a copy on disk; "?" stands for none.
func (l *lab) wantCopy(name, want string) {
	l.t.Helper()
	synctest.Wait()
	o, known, err := l.settings.Copies.Find(keyNamed(name))
	got := "?"
	switch {
	case err != nil:
		got = err.Error()
	case known && o == nil:
		got = "absent"
	case known:
		got = o.ConfigMap.Data["key"]
	}
	l.want("the copy of "+name, got, want)
}

// TestFirstAnswer checks how long a pass waits for the API server, and what wakes the pod.
func TestFirstAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, t.TempDir()).run()
		defer l.end()
		d := podWith("1", "one", "two")
		l.want("silence", l.pass(d), "one=? two=? 1s")
		l.answer("one", configMap("one", "x"))
		l.want("woken by the first answer", l.woken, "[1]")
		l.answerAfter(300*time.Millisecond, configMap("two", "y"))
		l.want("an answer during the pass", l.pass(d), "one=x two=y 300ms")
		l.want("woken by an answer that the pass has seen", l.woken, "[1]")
		l.want("known objects", l.pass(d), "one=x two=y 0s")
		l.want("another pod", l.pass(podWith("2", "", "two")), "two=y 0s")
		slices.Sort(l.begun)
		l.want("watches", l.begun, "[one two]")
	})
}

// TestChangesWake checks which pods a change wakes: those with the object in a volume, and those that wait for it.
func TestChangesWake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, t.TempDir()).run()
		defer l.end()
		volume, env := podWith("1", "one", ""), podWith("2", "", "one")
		answered := make(chan struct{})
		go func() {
			defer close(answered)
			synctest.Wait()
			if sink := l.sink("one"); sink != nil {
				sink.Set(nil)
			}
		}()
		l.want("a missing object", l.pass(volume), "0s")
		<-answered
		l.pass(env)
		for _, c := range []struct {
			what  string
			to    *podspec.Object
			woken string
		}{
			{"created", configMap("one", "a"), "[1 2]"},
			{"the same", configMap("one", "a"), "[]"},
			{"changed", configMap("one", "b"), "[1]"},
			{"gone", nil, "[1]"},
			{"created again", configMap("one", "b"), "[1 2]"},
		} {
			l.woken = nil
			l.answer("one", c.to)
			l.want(c.what, l.woken, c.woken)
		}
		l.want("the last value", l.pass(volume), "one=b 0s")
		l.over["1"] = true
		l.NotePass("1")
		synctest.Wait()
		l.woken = nil
		l.answer("one", configMap("one", "c"))
		l.want("a pod that has ended", l.woken, "[]")
	})
}

// TestCopies checks that the last answers are on disk until no pod names them, and that passes use them without the
// API server.
func TestCopies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		root := t.TempDir()
		l := newLab(t, root).run()
		one, two := podWith("1", "one", "none"), podWith("2", "", "one")
		go func() {
			l.answer("one", configMap("one", "x"))
			l.answer("none", nil)
		}()
		l.want("with the API server", l.pass(one), "one=x 0s")
		l.pass(two)
		l.wantCopy("one", "x")
		l.wantCopy("none", "absent")
		l.end()

		l = newLab(t, root)
		l.stored = []*podspec.Desired{one, two}
		l.run()
		l.want("a silent API server", l.pass(one), "one=x 1s")
		l.want("the next pass", l.pass(one), "one=x 0s")
		l.end()

		l = newLab(t, root)
		l.stored = []*podspec.Desired{one, two}
		l.run()
		defer l.end()
		go func() {
			synctest.Wait()
			l.sink("one").Fail(errors.New("connection refused"))
			l.sink("none").Fail(errors.New("connection refused"))
		}()
		l.want("an API server that cannot be reached", l.pass(one), "one=x 0s")
		l.Forget("1")
		l.wantCopy("none", "?")
		l.wantCopy("one", "x")
		l.Forget("2")
		l.wantCopy("one", "?")
		l.want("ended watches", slices.Sorted(slices.Values(l.ended)), "[none one]")
	})
}

// TestFailedCopies checks that copies that could not be written are written later, also that of an object that cannot
// change, and that the log reports each failure once.
func TestFailedCopies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, t.TempDir()).run()
		defer l.end()
		dir := filepath.Join(l.layout.Root, "cluster")
		if err := errors.Join(os.RemoveAll(dir), os.WriteFile(dir, nil, 0o600)); err != nil {
			t.Fatal(err)
		}
		final := configMap("two", "y")
		final.ConfigMap.Immutable = new(true)
		d := podWith("1", "one", "two")
		go func() {
			l.answer("one", configMap("one", "w"))
			l.answer("one", configMap("one", "x"))
			l.answer("two", final)
		}()
		l.want("a full disk", l.pass(d), "one=x two=y 0s")
		apitest.Sleep(10 * time.Minute)
		l.want("failures", strings.Count(l.log.String(), "cannot store"), "2")
		if err := os.Remove(dir); err != nil {
			t.Fatal(err)
		}
		apitest.Sleep(idleCheck)
		l.wantCopy("one", "x")
		l.wantCopy("two", "y")
	})
}

// TestLeftovers checks that copies that no record of a pod names are removed at the start, unless a record is unreadable.
func TestLeftovers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		root := t.TempDir()
		l := newLab(t, root)
		for _, name := range []string{"used", "left"} {
			if err := l.settings.Copies.Keep(keyNamed(name), configMap(name, "x")); err != nil {
				t.Fatal(err)
			}
		}
		l.stored, l.unreadable = []*podspec.Desired{podWith("1", "used", "")}, true
		l.run().end()
		l.wantCopy("left", "x")
		l = newLab(t, root)
		l.stored = []*podspec.Desired{podWith("1", "used", "")}
		l.run().end()
		l.wantCopy("left", "?")
		l.wantCopy("used", "x")
		l.want("watches", l.begun, "[]")
	})
}

// TestWatchesEnd checks when a watch ends and when it begins again.
func TestWatchesEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, t.TempDir()).run()
		defer l.end()
		d, final := podWith("1", "vol", "env"), configMap("final", "x")
		final.ConfigMap.Immutable = new(true)
		l.answerAfter(0, configMap("vol", "x"), configMap("env", "x"))
		l.pass(d)
		l.answerAfter(0, final)
		l.pass(podWith("2", "final", ""))
		l.want("an immutable object", l.ended, "[final]")
		l.want("its next use", l.pass(podWith("3", "final", "")), "final=x 0s")
		apitest.Sleep(idleTime + 2*idleCheck)
		l.want("an object that only an environment has", l.ended, "[final env]")
		l.answerAfter(0, configMap("env", "y"))
		l.want("its next use", l.pass(d), "env=y vol=x 0s")
		l.over["1"] = true
		l.NotePass("1")
		synctest.Wait()
		slices.Sort(l.ended)
		l.want("the pod has ended", l.ended, "[env env final vol]")
		l.want("a pass of the ended pod", l.pass(d), "env=y vol=x 0s")
		slices.Sort(l.begun)
		l.want("watches", l.begun, "[env env final vol]")
	})
}

// TestEndingPod checks that a pod that is deleted starts no watch, but keeps the objects that it has.
func TestEndingPod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, t.TempDir()).run()
		defer l.end()
		d := podWith("1", "one", "")
		d.Pod.DeletionTimestamp = new(metav1.Now())
		l.want("unknown", l.pass(d), "one=? 0s")
		l.want("watches", l.begun, "[]")
	})
}

// TestReferencesLimits checks that a pod cannot exhaust memory or disk: by the number of its objects, their size, or
// names that no object can have.
func TestReferencesLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, t.TempDir()).run()
		defer l.end()
		many := podWith("1", "", "")
		for i := range maxObjects + 1 {
			many.Pod.Spec.ImagePullSecrets = append(many.Pod.Spec.ImagePullSecrets, v1.LocalObjectReference{Name: fmt.Sprint("s", i)})
		}
		if got := l.pass(many); !strings.Contains(got, "s0=? the pod names 501 ConfigMaps, Secrets and claims, which is more than 500") {
			t.Errorf("%.200s", got)
		}
		l.want("names that are paths", l.pass(podWith("2", "../../x", "A b")), "0s")
		l.want("watches", l.begun, "[]")
		l.answerAfter(0, configMap("big", strings.Repeat("x", maxObject+1)))
		l.want("a large object", l.pass(podWith("3", "big", "")), "big=? it has 1048577 bytes, which is more than 1048576 1s")
		l.wantCopy("big", "?")

		large := podWith("4", "", "")
		large.Pod.Spec.Containers[0].EnvFrom = nil
		for i := range maxBytes/maxObject + 1 {
			name := fmt.Sprint("l", i)
			large.Pod.Spec.Containers[0].EnvFrom = append(large.Pod.Spec.Containers[0].EnvFrom, v1.EnvFromSource{
				ConfigMapRef: &v1.ConfigMapEnvSource{LocalObjectReference: v1.LocalObjectReference{Name: name}},
			})
		}
		go func() {
			synctest.Wait()
			for i := range maxBytes/maxObject + 1 {
				name := fmt.Sprint("l", i)
				l.answer(name, configMap(name, strings.Repeat("x", maxObject)))
			}
		}()
		if got := l.pass(large); !strings.Contains(got, "l0=? the ConfigMaps and Secrets of the pod have 4") {
			t.Errorf("%.200s", got)
		}
	})
}

// TestOtherPods checks that pods of other sources get nothing from the API server.
func TestOtherPods(t *testing.T) {
	l := newLab(t, t.TempDir())
	d := podWith("1", "one", "")
	d.Owner = "files"
	if with, err := l.Complete(t.Context(), d); with != d || err != nil || len(l.begun) > 0 {
		t.Errorf("%v %v %v", with, err, l.begun)
	}
}

// TestToken checks that each pod has its own token, that a watch gets the copy of an earlier run, and that a new token
// wakes the pod.
func TestToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		root, source := t.TempDir(), &v1.ServiceAccountTokenProjection{Path: "token"}
		name := podspec.TokenName(source)
		withToken := func(uid string) *podspec.Desired {
			d := podWith(uid, "", "")
			vol := v1.Volume{Name: "v"}
			vol.Projected = &v1.ProjectedVolumeSource{Sources: []v1.VolumeProjection{{ServiceAccountToken: source}}}
			d.Pod.Spec.Volumes = []v1.Volume{vol}
			return d
		}
		issued := func(uid types.UID, text string) *podspec.Object {
			return &podspec.Object{Secret: &v1.Secret{
				ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: podspec.BindName(uid, name)},
				Data:       map[string][]byte{podspec.TokenKey: []byte(text)},
			}}
		}
		l := newLab(t, root).run()
		l.answerAfter(time.Millisecond, issued("1", "one"))
		d, err := l.Complete(t.Context(), withToken("1"))
		if err != nil || string(d.Objects.Secrets[name].Data[podspec.TokenKey]) != "one" || d.Own().Secrets[name] != nil {
			t.Fatalf("%+v %v", d, err)
		}
		if d, err = l.Complete(t.Context(), withToken("2")); err != nil || len(d.Objects.Secrets) != 0 || len(d.Unread) != 1 {
			t.Errorf("another pod: %+v %v", d.Objects, err)
		}
		l.answer(podspec.BindName("1", name), issued("1", "two"))
		if !slices.Equal(l.woken, []string{"1"}) {
			t.Errorf("woken: %v", l.woken)
		}
		l.end()

		l = newLab(t, root)
		l.stored = []*podspec.Desired{withToken("1")}
		l.run()
		defer l.end()
		if d, err = l.Complete(t.Context(), withToken("1")); err != nil || len(d.Objects.Secrets) != 1 {
			t.Fatalf("%+v %v", d, err)
		}
		synctest.Wait()
		kept := l.sink(podspec.BindName("1", name)).Current()
		if kept == nil || string(kept.Secret.Data[podspec.TokenKey]) != "two" {
			t.Errorf("the copy: %+v", kept)
		}
	})
}

// TestClaims checks that each pod has its own binding of a claim, that a pod waits for the first answer and is woken by
// another one, and that a bound claim is read only once.
func TestClaims(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		root, name := t.TempDir(), podspec.ObjectName{Kind: podspec.KindClaim, Name: "data"}
		withVolume := func(uid string) *podspec.Desired {
			d, vol := podWith(uid, "", ""), v1.Volume{Name: "v"}
			vol.PersistentVolumeClaim = &v1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}
			d.Pod.Spec.Volumes = []v1.Volume{vol}
			return d
		}
		key := func(uid types.UID) string { return podspec.BindName(uid, podspec.ClaimKey("data")) }
		answer := func(reason string) *podspec.Object {
			o := &podspec.Object{Claim: &v1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: key("1")}}}
			if o.Volume = (&podspec.HostVolume{Name: "pv", Path: "/data"}); reason != "" {
				o.Volume, o.Unusable = nil, &podspec.UnreadError{Reason: reason, Status: reason}
			}
			return o
		}
		l, begun := newLab(t, root).run(), time.Now()
		l.answerAfter(time.Millisecond, answer("PVC is not bound"))
		d, err := l.Complete(t.Context(), withVolume("1"))
		if err != nil || d.Unread[name].Status != "PVC is not bound" || time.Since(begun) > 2*time.Millisecond {
			t.Errorf("%+v %v after %v", d.Unread, err, time.Since(begun))
		}
		l.answer(key("1"), answer("PVC is not bound"))
		l.want("the same answer", l.woken, "[]")
		l.answer(key("1"), answer("no"))
		l.answer(key("1"), answer(""))
		l.want("other answers", l.woken, "[1 1]")
		synctest.Wait()
		l.want("ended", len(l.ended), 1)
		found := l.Any(func(k state.ObjectKey, o *podspec.Object) bool { return k.Name == key("1") && o.Volume.Path == "/data" })
		l.want("found", found, true)
		l.want("found", l.Any(func(k state.ObjectKey, _ *podspec.Object) bool { return k.Name == key("2") }), false)
		if d, err = l.Complete(t.Context(), withVolume("1")); err != nil || d.Objects.Volumes["data"].Path != "/data" || len(d.Unread) > 0 {
			t.Errorf("%+v %v", d, err)
		}
		if d, err = l.Complete(t.Context(), withVolume("2")); err != nil || len(d.Objects.Volumes) != 0 || len(d.Unread) != 1 {
			t.Errorf("another pod: %+v %v", d, err)
		}
		l.end()
		l = newLab(t, root)
		l.stored = []*podspec.Desired{withVolume("1")}
		l.run()
		if d, err = l.Complete(t.Context(), withVolume("1")); err != nil || d.Objects.Volumes["data"].Path != "/data" {
			t.Errorf("after a restart: %+v %v", d, err)
		}
		l.want("requests after a restart", l.begun, "[]")
		l.Forget("1")
		synctest.Wait()
		if left, err := l.settings.Copies.Dir.List(); err != nil || len(left) != 0 {
			t.Errorf("left: %v %v", left, err)
		}
		l.end()
	})
}
