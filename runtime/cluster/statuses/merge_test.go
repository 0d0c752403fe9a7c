package statuses

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

func noon() time.Time { return time.Date(2026, 5, 4, 12, 0, 0, 7, time.UTC) }

// podFrom reads a pod from YAML. It has the name web in the namespace default, and the uid u1.
func podFrom(t *testing.T, text string) *v1.Pod {
	t.Helper()
	pod := &v1.Pod{}
	if err := yaml.UnmarshalStrict([]byte(text), pod); err != nil {
		t.Fatal(err)
	}
	pod.Namespace, pod.Name, pod.UID = "default", "web", "u1"
	return pod
}

// statusFrom reads a status from YAML.
func statusFrom(t *testing.T, text string) v1.PodStatus {
	t.Helper()
	var s v1.PodStatus
	if err := yaml.UnmarshalStrict([]byte(text), &s); err != nil {
		t.Fatal(err)
	}
	return s
}

// mergeCase is a merge in YAML. want has the fields of the result that are compared; a field with null must be missing.
type mergeCase struct {
	pod, own   string
	generation int64
	mayRun     bool
	want       string
}

func (c mergeCase) run(t *testing.T) {
	t.Helper()
	api := podFrom(t, c.pod)
	unchanged := api.DeepCopy()
	m := Merge{API: api, Own: statusFrom(t, c.own), Generation: c.generation, MayRun: c.mayRun, Now: noon()}
	got, err := m.Status()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(unchanged, api); diff != "" {
		t.Errorf("the merge changed its input\n%s", diff)
	}
	if diff := cmp.Diff(fields(t, c.want), only(fields(t, toYAML(t, got)), fields(t, c.want))); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	// The API server has the result. The same status then gives no request.
	api.Status = got
	again, err := (&Merge{API: api, Own: m.Own, Generation: c.generation, MayRun: c.mayRun, Now: noon().Add(time.Hour)}).Status()
	if err != nil {
		t.Fatal(err)
	}
	if patch, err := patchOf("u1", &got, &again); err != nil || patch != nil {
		t.Errorf("a second merge changes the status: %s, %v", patch, err)
	}
}

func toYAML(t *testing.T, value any) string {
	t.Helper()
	data, err := yaml.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func fields(t *testing.T, text string) map[string]any {
	t.Helper()
	m := map[string]any{}
	if err := yaml.Unmarshal([]byte(text), &m); err != nil {
		t.Fatal(err)
	}
	return m
}

// only returns the fields of got that want has.
func only(got, want map[string]any) map[string]any {
	m := map[string]any{}
	for name := range want {
		m[name] = got[name]
	}
	return m
}

const regular = "spec: {restartPolicy: %s, containers: [{name: app}]}\n"

// always, onFailure and never are specs of pods with one container.
func spec(policy string) string { return strings.Replace(regular, "%s", policy, 1) }

// TestMergePhase checks that phases never go back, and that a terminal phase waits until no container can run (kubelet:
// TestMergePodStatus, generateAPIPodStatus).
func TestMergePhase(t *testing.T) {
	const running = "containerStatuses: [{name: app, containerID: c://1, state: {running: {}}}]"
	for name, c := range map[string]mergeCase{
		"it starts": {
			pod: spec("Always"), own: "{phase: Running}", want: "{phase: Running}",
		},
		"it ends": {
			pod: spec("Never") + "status: {phase: Running}", own: "{phase: Failed, reason: Evicted, message: why}",
			want: "{phase: Failed, reason: Evicted, message: why}",
		},
		"a container still runs": {
			pod:  spec("Never") + "status: {phase: Running}",
			own:  "{phase: Failed, reason: DeadlineExceeded, message: late, " + running + "}",
			want: "{phase: Running, reason: null, message: null}",
		},
		"a container may run": {
			pod: spec("Never") + "status: {phase: Running, reason: r, message: m}", own: "{phase: Succeeded}", mayRun: true,
			want: "{phase: Running, reason: r, message: m}",
		},
		"a container may run in a new pod": {
			pod: spec("Never"), own: "{phase: Failed}", mayRun: true, want: "{phase: Pending}",
		},
		"a terminal phase is final": {
			pod: spec("Never") + "status: {phase: Failed, reason: Evicted, message: why}", own: "{phase: Running, reason: other}",
			want: "{phase: Failed, reason: Evicted, message: why}",
		},
		"one terminal phase does not become the other": {
			pod: spec("Never") + "status: {phase: Succeeded}", own: "{phase: Failed, reason: Error, message: x}",
			want: "{phase: Succeeded, reason: null, message: null}",
		},
		"the reason of others stays with the phase": {
			pod: spec("Always") + "status: {phase: Running, reason: NodeLost, message: gone}", own: "{phase: Running}",
			want: "{phase: Running, reason: NodeLost, message: gone}",
		},
		"the reason goes with the phase": {
			pod: spec("Always") + "status: {phase: Pending, reason: r, message: m}", own: "{phase: Running}",
			want: "{phase: Running, reason: null, message: null}",
		},
		"the records are lost": {
			pod:  spec("Always") + "status: {phase: Running, " + running + "}",
			own:  "{phase: Pending, containerStatuses: [{name: app, state: {waiting: {reason: ContainerCreating}}}]}",
			want: "{phase: Running}",
		},
		"it initializes again in a new sandbox": {
			pod:  "spec: {initContainers: [{name: seed}], containers: [{name: app}]}\nstatus: {phase: Running}",
			own:  "{phase: Pending, initContainerStatuses: [{name: seed, containerID: c://2, state: {running: {}}}]}",
			want: "{phase: Pending}",
		},
		"a sidecar starts again": {
			pod:  "spec: {initContainers: [{name: side, restartPolicy: Always}], containers: [{name: app}]}\nstatus: {phase: Running}",
			own:  "{phase: Pending, initContainerStatuses: [{name: side, state: {waiting: {}}}]}",
			want: "{phase: Running}",
		},
	} {
		t.Run(name, c.run)
	}
}

// TestMergeConditions checks which conditions podctl owns, and the time of their last change (kubelet:
// TestMergePodStatus, updateLastTransitionTime, TestReconcilePodStatus).
func TestMergeConditions(t *testing.T) {
	const before, now = `"2026-05-04T11:00:00Z"`, `"2026-05-04T12:00:00Z"`
	for name, c := range map[string]mergeCase{
		"others stay, and come first": {
			pod: spec("Always") + "status: {phase: Running, conditions: [{type: Ready, status: 'False', lastTransitionTime: " + before +
				"}, {type: example.com/x, status: 'True', reason: r}]}",
			own: "{phase: Running, conditions: [{type: Ready, status: 'True'}]}",
			want: "conditions: [{type: example.com/x, status: 'True', reason: r, lastProbeTime: null, lastTransitionTime: null}, " +
				"{type: Ready, status: 'True', lastProbeTime: null, lastTransitionTime: " + now + "}]",
		},
		"podctl never sets a condition of others": {
			pod:  spec("Always") + "status: {phase: Running}",
			own:  "{phase: Running, conditions: [{type: example.com/x, status: 'True'}]}",
			want: "conditions: null",
		},
		"a time stays with the status, and reason and message may change": {
			pod: spec("Always") + "status: {phase: Running, conditions: [{type: ContainersReady, status: 'False', lastTransitionTime: " + before + "}]}",
			own: "{phase: Running, conditions: [{type: ContainersReady, status: 'False', reason: r, message: m, lastTransitionTime: " + now + "}]}",
			want: "conditions: [{type: ContainersReady, status: 'False', reason: r, message: m, lastProbeTime: null, lastTransitionTime: " +
				before + "}]",
		},
		"the recorded time of a change": {
			pod:  spec("Always") + "status: {phase: Running, conditions: [{type: Initialized, status: 'False', lastTransitionTime: " + before + "}]}",
			own:  `{phase: Running, conditions: [{type: Initialized, status: 'True', lastTransitionTime: "2026-05-04T11:30:00Z"}]}`,
			want: `conditions: [{type: Initialized, status: 'True', lastProbeTime: null, lastTransitionTime: "2026-05-04T11:30:00Z"}]`,
		},
		"a recorded time before the last change in the API": {
			pod:  spec("Always") + "status: {phase: Running, conditions: [{type: Initialized, status: 'False', lastTransitionTime: " + before + "}]}",
			own:  `{phase: Running, conditions: [{type: Initialized, status: 'True', lastTransitionTime: "2026-05-04T10:30:00Z"}]}`,
			want: `conditions: [{type: Initialized, status: 'True', lastProbeTime: null, lastTransitionTime: ` + now + `}]`,
		},
		"its own condition is removed": {
			pod:  spec("Always") + "status: {phase: Running, conditions: [{type: PodResizeInProgress, status: 'True'}]}",
			own:  "{phase: Running}",
			want: "conditions: null",
		},
		"the disruption comes with the terminal phase": {
			pod: spec("Never") + "status: {phase: Running, conditions: [{type: DisruptionTarget, status: 'False', lastTransitionTime: " + before + "}]}",
			own: "{phase: Failed, conditions: [{type: DisruptionTarget, status: 'True', reason: TerminationByKubelet}]}",
			want: "conditions: [{type: DisruptionTarget, status: 'True', reason: TerminationByKubelet, lastProbeTime: null, lastTransitionTime: " +
				now + "}]",
		},
		"and not before": {
			pod: spec("Never") + "status: {phase: Running}", mayRun: true,
			own:  "{phase: Failed, conditions: [{type: DisruptionTarget, status: 'True', reason: TerminationByKubelet}]}",
			want: "{phase: Running, conditions: null}",
		},
		"the disruption of others stays": {
			pod:  spec("Never") + "status: {phase: Running, conditions: [{type: DisruptionTarget, status: 'True', reason: EvictionByEvictionAPI}]}",
			own:  "{phase: Running, conditions: [{type: DisruptionTarget, status: 'True', reason: TerminationByKubelet}]}",
			want: "conditions: [{type: DisruptionTarget, status: 'True', reason: EvictionByEvictionAPI, lastProbeTime: null, lastTransitionTime: null}]",
		},
		"a pod with a terminal phase is never ready": {
			pod: spec("Never") + "status: {phase: Failed}",
			own: "{phase: Running, conditions: [{type: Ready, status: 'True'}, {type: ContainersReady, status: 'True'}]}",
			want: "conditions: [{type: Ready, status: 'False', reason: PodFailed, lastProbeTime: null, lastTransitionTime: " + now + "}, " +
				"{type: ContainersReady, status: 'False', reason: PodFailed, lastProbeTime: null, lastTransitionTime: " + now + "}]",
		},
		"a gate of the API opens": {
			pod: "spec: {readinessGates: [{conditionType: a/b}], containers: [{name: app}]}\n" +
				"status: {phase: Running, conditions: [{type: a/b, status: 'True'}]}",
			own: "{phase: Running, conditions: [{type: Ready, status: 'False', reason: ReadinessGatesNotReady, message: m, lastTransitionTime: " +
				before + "}, {type: ContainersReady, status: 'True', lastTransitionTime: " + before + "}]}",
			want: "conditions: [{type: a/b, status: 'True', lastProbeTime: null, lastTransitionTime: null}, " +
				"{type: Ready, status: 'True', lastProbeTime: null, lastTransitionTime: " + now + "}, " +
				"{type: ContainersReady, status: 'True', lastProbeTime: null, lastTransitionTime: " + before + "}]",
		},
		"a gate of the API closes": {
			pod: "spec: {readinessGates: [{conditionType: a/b}], containers: [{name: app}]}\n" +
				"status: {phase: Running, conditions: [{type: a/b, status: 'False'}]}",
			own: "{phase: Running, conditions: [{type: Ready, status: 'True'}, {type: ContainersReady, status: 'True'}]}",
			want: "conditions: [{type: a/b, status: 'False', lastProbeTime: null, lastTransitionTime: null}, {type: Ready, status: 'False', " +
				"reason: ReadinessGatesNotReady, message: 'the status of pod readiness gate \"a/b\" is not \"True\", but False', lastProbeTime: null, " +
				"lastTransitionTime: " + now + "}, {type: ContainersReady, status: 'True', lastProbeTime: null, lastTransitionTime: " + now + "}]",
		},
	} {
		t.Run(name, c.run)
	}
}

// TestMergeGeneration checks that observed generations never go back, and that a mirror pod has none.
func TestMergeGeneration(t *testing.T) {
	const own = "{phase: Running, conditions: [{type: ContainersReady, status: 'True', lastTransitionTime: \"2026-05-04T11:00:00Z\"}]}"
	want := func(status, condition string) string {
		return "observedGeneration: " + status + "\nconditions: [{type: ContainersReady, status: 'True', observedGeneration: " + condition +
			", lastProbeTime: null, lastTransitionTime: \"2026-05-04T11:00:00Z\"}]"
	}
	api := func(status, condition string) string {
		return spec("Always") + "status: {phase: Running, observedGeneration: " + status +
			", conditions: [{type: ContainersReady, status: 'True', observedGeneration: " + condition +
			", lastTransitionTime: \"2026-05-04T11:00:00Z\"}]}"
	}
	for name, c := range map[string]mergeCase{
		"a new pod":      {pod: spec("Always"), own: own, generation: 1, want: want("1", "1")},
		"an edit":        {pod: api("1", "1"), own: own, generation: 2, want: want("2", "2")},
		"never back":     {pod: api("5", "4"), own: own, generation: 3, want: want("5", "4")},
		"a newer status": {pod: api("5", "2"), own: own, generation: 3, want: want("5", "3")},
		"a mirror pod": {
			pod: "metadata: {annotations: {kubernetes.io/config.mirror: h}}\n" + spec("Always"), own: own, generation: 3,
			want: "observedGeneration: null\nconditions: [{type: ContainersReady, status: 'True', lastProbeTime: null, " +
				"lastTransitionTime: \"2026-05-04T11:00:00Z\"}]",
		},
		"a resize has the generation that asks for it": {
			pod: spec("Always"), generation: 3,
			own: "{phase: Running, conditions: [{type: PodResizePending, status: 'True', observedGeneration: 2, lastTransitionTime: \"2026-05-04T11:00:00Z\"}]}",
			want: "observedGeneration: 3\nconditions: [{type: PodResizePending, status: 'True', observedGeneration: 2, lastProbeTime: null, " +
				"lastTransitionTime: \"2026-05-04T11:00:00Z\"}]",
		},
	} {
		t.Run(name, c.run)
	}
}

// TestMergeContainers checks that ended containers change only if they may restart, and that counts and the end of the
// last run never go back (kubelet: TestCheckContainerStateTransition, convertToAPIContainerStatuses).
func TestMergeContainers(t *testing.T) {
	const (
		ended   = "{name: app, containerID: c://1, restartCount: 2, ready: false, image: '', imageID: '', state: {terminated: {exitCode: %s}}}"
		runs    = "{name: app, containerID: c://2, restartCount: 0, ready: false, image: '', imageID: '', state: {running: {}}}"
		creates = "{name: app, ready: false, image: '', imageID: '', state: {waiting: {reason: ContainerCreating}}}"
	)
	list := func(status string) string { return "{phase: Running, containerStatuses: [" + status + "]}" }
	end := func(code string) string { return strings.Replace(ended, "%s", code, 1) }
	stays := func(status string) string { return "containerStatuses: [" + full(t, status) + "]" }
	again := func(code, count string) string {
		return stays("{name: app, containerID: c://2, restartCount: " + count + ", state: {running: {}}, lastState: {terminated: {exitCode: " + code + "}}}")
	}
	for name, c := range map[string]mergeCase{
		"Always restarts": {pod: spec("Always") + "status: " + list(end("0")), own: list(runs), want: again("0", "3")},
		"OnFailure restarts a failure": {
			pod: spec("OnFailure") + "status: " + list(end("1")), own: list(runs), want: again("1", "3"),
		},
		"OnFailure does not restart a success": {pod: spec("OnFailure") + "status: " + list(end("0")), own: list(runs), want: stays(end("0"))},
		"Never does not restart":               {pod: spec("Never") + "status: " + list(end("1")), own: list(runs), want: stays(end("1"))},
		"Never does not wait again":            {pod: spec("Never") + "status: " + list(end("1")), own: list(creates), want: stays(end("1"))},
		"a rule restarts": {
			pod: "spec: {restartPolicy: Never, containers: [{name: app, restartPolicy: Never, restartPolicyRules: [{action: Restart, " +
				"exitCodes: {operator: In, values: [42]}}]}]}\nstatus: " + list(end("42")),
			own: list(runs), want: again("42", "3"),
		},
		"a rule of another container restarts all": {
			pod: "spec: {restartPolicy: Never, containers: [{name: app}, {name: other, restartPolicy: Never, restartPolicyRules: " +
				"[{action: RestartAllContainers, exitCodes: {operator: In, values: [42]}}]}]}\nstatus: " + list(end("1")),
			own: list(runs), want: again("1", "3"),
		},
		"counts do not go back": {
			pod:  spec("Always") + "status: " + list("{name: app, containerID: c://1, restartCount: 5, state: {running: {}}}"),
			own:  list(runs),
			want: stays("{name: app, containerID: c://2, restartCount: 5, state: {running: {}}}"),
		},
		"the end of the last run stays": {
			pod: spec("Always") + "status: " + list("{name: app, containerID: c://2, restartCount: 1, state: {running: {}}, "+
				"lastState: {terminated: {exitCode: 3}}}"),
			own:  list(runs),
			want: stays("{name: app, containerID: c://2, restartCount: 1, state: {running: {}}, lastState: {terminated: {exitCode: 3}}}"),
		},
		"the record of an ended container is lost": {
			pod: spec("Always") + "status: " + list(end("3")), own: list(creates), want: stays(end("3")),
		},
		"the record of a running container is lost": {
			pod: spec("Always") + "status: " + list(runs), own: list(creates),
			want: stays("{name: app, restartCount: 1, state: {waiting: {reason: ContainerCreating}}, lastState: {terminated: {exitCode: 137, " +
				"reason: ContainerStatusUnknown, message: 'The container could not be located when the pod was deleted.  The container used to be Running'}}}"),
		},
		"the record is lost while the pod is deleted": {
			pod: "metadata: {deletionTimestamp: '2026-05-04T11:00:00Z'}\n" + spec("Always") + "status: " + list(runs), own: list(creates),
			want: stays("{name: app, restartCount: 0, state: {waiting: {reason: ContainerCreating}}, lastState: {terminated: {exitCode: 137, " +
				"reason: ContainerStatusUnknown, message: 'The container could not be located when the pod was deleted.  The container used to be Running'}}}"),
		},
		"a failed pull keeps the count": {
			pod:  spec("Always") + "status: " + list(end("3")),
			own:  list("{name: app, state: {waiting: {reason: ImagePullBackOff}}}"),
			want: stays("{name: app, restartCount: 2, state: {waiting: {reason: ImagePullBackOff}}, lastState: {terminated: {exitCode: 3}}}"),
		},
		"a debug container never restarts": {
			pod: "spec: {containers: [], ephemeralContainers: [{name: app}]}\nstatus: {phase: Running, ephemeralContainerStatuses: [" + end("0") + "]}",
			own: "{phase: Running, ephemeralContainerStatuses: [" + runs + "]}", want: "ephemeralContainerStatuses: [" + full(t, end("0")) + "]",
		},
		"a sidecar restarts": {
			pod: "spec: {restartPolicy: Never, initContainers: [{name: app, restartPolicy: Always}], containers: []}\n" +
				"status: {phase: Running, initContainerStatuses: [" + end("0") + "]}",
			own: "{phase: Running, initContainerStatuses: [" + runs + "]}", want: strings.Replace(again("0", "3"), "containerS", "initContainerS", 1),
		},
	} {
		t.Run(name, c.run)
	}
}

// full returns a container's status with all fields that are always present.
func full(t *testing.T, text string) string {
	t.Helper()
	var s v1.ContainerStatus
	if err := yaml.UnmarshalStrict([]byte(text), &s); err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// TestMergeKeeps checks the fields that podctl does not own, that never change, or that outlive the sandbox.
func TestMergeKeeps(t *testing.T) {
	const started = `"2026-05-04T11:00:00Z"`
	for name, c := range map[string]mergeCase{
		"claims and the nominated node": {
			pod: spec("Always") + "status: {phase: Running, resourceClaimStatuses: [{name: a, resourceClaimName: b}], " +
				"extendedResourceClaimStatus: {requestMappings: [], resourceClaimName: c}, nominatedNodeName: node1}",
			own: "{phase: Running, nominatedNodeName: other}",
			want: "{resourceClaimStatuses: [{name: a, resourceClaimName: b}], nominatedNodeName: node1, " +
				"extendedResourceClaimStatus: {requestMappings: [], resourceClaimName: c}}",
		},
		"the start time": {
			pod: spec("Always") + "status: {phase: Running, startTime: " + started + "}", own: `{phase: Running, startTime: "2026-05-04T11:30:00Z"}`,
			want: "startTime: " + started,
		},
		"a new start time": {pod: spec("Always"), own: `{phase: Running, startTime: ` + started + `}`, want: "startTime: " + started},
		"no start time":    {pod: spec("Always"), own: `{phase: Pending}`, want: `startTime: "2026-05-04T12:00:00Z"`},
		"the class": {
			pod: spec("Always") + "status: {qosClass: Burstable}", own: "{phase: Running, qosClass: BestEffort}", want: "qosClass: Burstable",
		},
		"the addresses of a pod that ends": {
			pod: "metadata: {deletionTimestamp: '2026-05-04T11:00:00Z'}\n" + spec("Always") +
				"status: {phase: Running, podIP: 10.0.0.2, podIPs: [{ip: 10.0.0.2}], hostIP: 192.0.2.1, hostIPs: [{ip: 192.0.2.1}]}",
			own:  "{phase: Running}",
			want: "{podIP: 10.0.0.2, podIPs: [{ip: 10.0.0.2}], hostIP: 192.0.2.1, hostIPs: [{ip: 192.0.2.1}]}",
		},
		"not those of a pod that waits for another sandbox": {
			pod:  spec("Always") + "status: {phase: Running, podIP: 10.0.0.2, podIPs: [{ip: 10.0.0.2}]}",
			own:  "{phase: Running}",
			want: "{podIP: null, podIPs: null}",
		},
	} {
		t.Run(name, c.run)
	}
}

// TestMergeRefusesUnobserved checks that the status of a pod that could not be observed is never sent.
func TestMergeRefusesUnobserved(t *testing.T) {
	for _, phase := range []v1.PodPhase{"", v1.PodUnknown} {
		m := Merge{API: podFrom(t, spec("Always")), Own: v1.PodStatus{Phase: phase}, Now: noon()}
		if s, err := m.Status(); err == nil {
			t.Errorf("%q gives %v", phase, s)
		}
	}
}

// TestMergeKeepsTheTimeOfAnUnsentChange checks that a change keeps its time while the API server cannot be reached.
func TestMergeKeepsTheTimeOfAnUnsentChange(t *testing.T) {
	m := Merge{
		API: podFrom(t, spec("Always")), Own: statusFrom(t, "{phase: Running, conditions: [{type: ContainersReady, status: 'True'}]}"), Now: noon(),
	}
	first, err := m.Status()
	if err != nil {
		t.Fatal(err)
	}
	m.Before, m.Now = &first, noon().Add(time.Hour)
	second, err := m.Status()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(first.Conditions, second.Conditions); diff != "" {
		t.Error(diff)
	}
}

// TestNormalize checks whole seconds, valid UTF-8, and the limits of messages: those of ended containers share 12 KiB
// (kubelet: TestTruncatePodStatus).
func TestNormalize(t *testing.T) {
	pod := podFrom(t, "spec: {initContainers: [{name: i}], containers: [{name: a}, {name: b}]}")
	at := metav1.NewTime(noon().Add(999 * time.Millisecond))
	long := strings.Repeat("é", 8<<10)
	s := v1.PodStatus{
		Phase: v1.PodRunning, StartTime: &at, Message: "a\xff" + long,
		Conditions: []v1.PodCondition{{Type: v1.PodReady, LastTransitionTime: at, LastProbeTime: at, Message: long}},
		ContainerStatuses: []v1.ContainerStatus{
			{Name: "b", State: v1.ContainerState{Terminated: &v1.ContainerStateTerminated{StartedAt: at, FinishedAt: at, Message: "x" + long}}},
			{
				Name: "a", State: v1.ContainerState{Waiting: &v1.ContainerStateWaiting{Message: long}},
				LastTerminationState: v1.ContainerState{Terminated: &v1.ContainerStateTerminated{Message: long}},
			},
		},
	}
	normalize(pod, &s)
	whole := noon().Truncate(time.Second)
	b, a := s.ContainerStatuses[1], s.ContainerStatuses[0]
	for name, got := range map[string]time.Time{
		"start": s.StartTime.Time, "transition": s.Conditions[0].LastTransitionTime.Time, "probe": s.Conditions[0].LastProbeTime.Time,
		"end": b.State.Terminated.FinishedAt.Time, "begin": b.State.Terminated.StartedAt.Time,
	} {
		if !got.Equal(whole) {
			t.Errorf("%s: %s", name, got)
		}
	}
	for name, c := range map[string]struct {
		text string
		want int
	}{
		"status": {s.Message, 12 << 10}, "condition": {s.Conditions[0].Message, 12 << 10}, "waiting": {a.State.Waiting.Message, 12 << 10},
		"last": {a.LastTerminationState.Terminated.Message, 4 << 10}, "ended": {b.State.Terminated.Message, 4<<10 - 1},
	} {
		if len(c.text) != c.want {
			t.Errorf("%s has %d bytes, want %d", name, len(c.text), c.want)
		}
	}
	if !strings.HasPrefix(s.Message, "a�é") {
		t.Errorf("the message begins with %q", s.Message[:8])
	}
}

// TestPatch checks that a patch has only what changes, and the uid.
func TestPatch(t *testing.T) {
	before := statusFrom(t, "{phase: Pending, qosClass: Burstable, conditions: [{type: PodScheduled, status: 'True'}, {type: x/y, status: 'True'}]}")
	after := statusFrom(t, "{phase: Running, qosClass: Burstable, conditions: [{type: x/y, status: 'True'}, {type: PodScheduled, status: 'True'}, {type: Ready, status: 'True'}]}")
	patch, err := patchOf("u1", &before, &after)
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"metadata":{"uid":"u1"},"status":{"$setElementOrder/conditions":[{"type":"x/y"},{"type":"PodScheduled"},{"type":"Ready"}],` +
		`"conditions":[{"lastProbeTime":null,"lastTransitionTime":null,"status":"True","type":"Ready"}],"phase":"Running"}}`
	if string(patch) != want {
		t.Errorf("%s\nwant %s", patch, want)
	}
	if patch, err = patchOf("u1", &after, after.DeepCopy()); err != nil || patch != nil {
		t.Errorf("equal statuses give %s, %v", patch, err)
	}
}
