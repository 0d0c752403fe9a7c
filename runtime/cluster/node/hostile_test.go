package node

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"reflect"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/podspec/load"
	"github.com/podctl/podctl/runtime/admission"
	"github.com/podctl/podctl/runtime/cluster/statuses"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/model/modeltest"
	"github.com/podctl/podctl/runtime/plan"
	"github.com/podctl/podctl/runtime/podstatus"
	"github.com/podctl/podctl/runtime/render"
	"github.com/podctl/podctl/runtime/state"
)

// hostile makes random pods with values that an API server would refuse.
type hostile struct{ rand *rand.Rand }

// oneOf returns one of some values.
func oneOf[T any](r *rand.Rand, all ...T) T { return all[r.IntN(len(all))] }

func (h hostile) text() string {
	return oneOf(h.rand, "", "a", "b", "Always", "Never", "Unknown", "HTTP", "TCP", "../../etc/passwd", "/", "/a/../b", "a:1",
		"\x00\xff", "a\nb\x1b[31m", "$(A)", "%s%n", "192.0.2.1", "1", "-1", strings.Repeat("x", 300), strings.Repeat("é", 3000))
}

func (h hostile) number() int64 {
	return oneOf[int64](h.rand, 0, 0, 1, 2, 3, 30, 80, -1, math.MinInt32, math.MaxInt32, math.MinInt64, math.MaxInt64)
}

func (h hostile) time() metav1.Time {
	return oneOf(h.rand, metav1.Time{}, metav1.NewTime(modeltest.Noon()), metav1.Unix(-1<<40, 0), metav1.Unix(1<<40, 0))
}

func (h hostile) quantity() resource.Quantity {
	text := oneOf(h.rand, "0", "1", "-1", "100m", "1Gi", "9223372036854775807", "-9223372036854775808", "9E")
	return resource.MustParse(text)
}

// fill sets a value to a random one. The deeper it is, the smaller.
func (h hostile) fill(v reflect.Value, depth int) {
	switch v.Type() {
	case reflect.TypeFor[metav1.Time]():
		v.Set(reflect.ValueOf(h.time()))
		return
	case reflect.TypeFor[resource.Quantity]():
		v.Set(reflect.ValueOf(h.quantity()))
		return
	}
	switch v.Kind() { //nolint:exhaustive // API types have no others
	case reflect.String:
		v.SetString(h.text())
	case reflect.Bool:
		v.SetBool(h.rand.IntN(2) == 0)
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(h.number())
	case reflect.Uint8:
		v.SetUint(uint64(h.rand.IntN(256)))
	case reflect.Pointer:
		if h.rand.IntN(3) == 0 && depth < 12 {
			v.Set(reflect.New(v.Type().Elem()))
			h.fill(v.Elem(), depth+1)
		}
	case reflect.Slice:
		for range h.rand.IntN(3) {
			one := reflect.New(v.Type().Elem()).Elem()
			h.fill(one, depth+1)
			v.Set(reflect.Append(v, one))
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for range h.rand.IntN(3) {
			key, one := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			h.fill(key, depth+1)
			h.fill(one, depth+1)
			v.SetMapIndex(key, one)
		}
	case reflect.Struct:
		for _, f := range v.Fields() {
			if f.CanSet() && h.rand.IntN(3) > 0 {
				h.fill(f, depth+1)
			}
		}
	}
}

// pod returns a hostile pod. Most have names that podctl accepts, so that the rest of the pod is used.
func (h hostile) pod() *v1.Pod {
	pod := &v1.Pod{}
	h.fill(reflect.ValueOf(pod).Elem(), 0)
	if h.rand.IntN(10) == 0 {
		return pod
	}
	pod.Namespace, pod.Name, pod.UID = "a", "web", "0b5a1bd2-3c3e-4a4f-9d7b-2f6a8c1e0d11"
	pod.Status.Phase = oneOf(h.rand, v1.PodPending, v1.PodRunning, v1.PodFailed, v1.PodSucceeded, "Odd")
	if len(pod.Spec.Containers) == 0 {
		pod.Spec.Containers = make([]v1.Container, 1)
		h.fill(reflect.ValueOf(&pod.Spec.Containers[0]).Elem(), 2)
	}
	n := 0
	name := func(to *string) {
		*to = fmt.Sprintf("n%d", n)
		n++
	}
	for i := range pod.Spec.Volumes {
		name(&pod.Spec.Volumes[i].Name)
	}
	for _, ref := range podspec.Containers(pod) {
		name(&ref.Name)
	}
	for i := range pod.Spec.EphemeralContainers {
		name(&pod.Spec.EphemeralContainers[i].Name)
	}
	return pod
}

// survive converts, admits, plans, renders and reports a pod. Each decision must end without a panic.
func (h hostile) survive(t *testing.T, pod *v1.Pod) (accepted bool) {
	t.Helper()
	d, err := load.FromAPI(pod)
	if err != nil {
		return false
	}
	machine := &model.Machine{Capacity: v1.ResourceList{v1.ResourceCPU: h.quantity(), v1.ResourceMemory: h.quantity()}}
	settings := &admission.Settings{MaxPods: 110}
	_ = admission.TakenBy(pod)
	_ = admission.Notes(pod, machine)
	_ = admission.Admit(&admission.Request{Pod: pod, Machine: machine, Settings: settings, FromCluster: true})
	now := modeltest.Noon()
	for _, w := range []*modeltest.World{modeltest.New(d), h.running(d)} {
		for _, opts := range []plan.Options{{}, {End: true, GracePeriod: new(max(1, h.number()))}, {Stop: true}} {
			facts := podstatus.Input{Desired: d, Observed: w.Observed, Now: now}
			in := &plan.Input{Input: facts, Pod: model.RefOf(pod), Options: opts}
			made := plan.Make(in)
			h.checkSteps(t, made)
			h.merge(t, pod, podstatus.Of(in.State()))
		}
	}
	_, _ = render.Render(d, state.Layout{Root: "/state", LogRoot: "/logs"}, "/")
	return true
}

// running returns a world in which each container has a record in some state.
func (h hostile) running(d *podspec.Desired) *modeltest.World {
	w := modeltest.New(d).Sandbox("s0", 0, model.SandboxReady)
	for _, ref := range podspec.Containers(d.Pod) {
		c := w.Container("s0", ref.Name, 0, oneOf(h.rand, model.Running, model.Exited, model.Created))
		c.ExitCode = int32(h.rand.IntN(3))
	}
	return w
}

// checkSteps checks that no step waits for a negative time.
func (h hostile) checkSteps(t *testing.T, p *plan.Plan) {
	t.Helper()
	for i := range p.Steps {
		if s := &p.Steps[i]; s.GracePeriodSeconds != nil && *s.GracePeriodSeconds < 0 {
			t.Errorf("step %s has a grace period of %d s", s.ID, *s.GracePeriodSeconds)
		}
	}
}

// merge merges a status into a hostile copy in the API. It must keep an end, and must not count back.
func (h hostile) merge(t *testing.T, pod *v1.Pod, own v1.PodStatus) {
	t.Helper()
	m := statuses.Merge{API: pod, Own: own, Generation: h.number(), MayRun: h.rand.IntN(2) == 0, Now: time.Now()}
	before := pod.DeepCopy()
	status, err := m.Status()
	if err != nil {
		return
	}
	if was := before.Status.Phase; (was == v1.PodFailed || was == v1.PodSucceeded) && status.Phase != was {
		t.Errorf("the phase %s becomes %s", was, status.Phase)
	}
	if !reflect.DeepEqual(before, pod) {
		t.Error("the merge changes the copy in the API")
	}
}

// TestHostilePods checks that no pod of an API server makes a decision panic. PODCTL_LIVES=FROM-TO tries other seeds.
func TestHostilePods(t *testing.T) {
	from, to := uint64(0), uint64(300)
	if text := os.Getenv("PODCTL_LIVES"); text != "" {
		first, last, _ := strings.Cut(text, "-")
		from, _ = strconv.ParseUint(first, 10, 64)
		to, _ = strconv.ParseUint(last, 10, 64)
	}
	accepted := 0
	for seed := from; seed < to && !t.Failed(); seed++ {
		func() {
			defer func() {
				if r := recover(); r != nil {
					t.Errorf("seed %d: %v\n%s", seed, r, debug.Stack())
				}
			}()
			h := hostile{rand.New(rand.NewPCG(seed, 0))}
			if h.survive(t, h.pod()) {
				accepted++
			}
			if t.Failed() {
				t.Logf("seed %d", seed)
			}
		}()
	}
	if n := int(to - from); accepted < n/2 && !t.Failed() {
		t.Errorf("only %d of %d pods were used", accepted, n)
	}
}
