package statuses

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
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
	pod, own string
	mayRun   bool
	want     string
}

func (c mergeCase) run(t *testing.T) {
	t.Helper()
	got := mergeTwice(t, &Merge{API: podFrom(t, c.pod), Own: statusFrom(t, c.own), MayRun: c.mayRun, Now: noon()})
	if diff := gocmp.Diff(fields(t, c.want), only(fields(t, toYAML(t, got)), fields(t, c.want))); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// mergeTwice returns the result of a merge. It checks that the input is unchanged, and that nothing is left to send
// once the API server has the result.
func mergeTwice(t *testing.T, m *Merge) v1.PodStatus {
	t.Helper()
	unchanged := m.API.DeepCopy()
	got, err := m.Status()
	if err != nil {
		t.Fatal(err)
	}
	if diff := gocmp.Diff(unchanged, m.API); diff != "" {
		t.Errorf("the merge changed its input\n%s", diff)
	}
	later := *m
	later.API, later.Now = unchanged, m.Now.Add(time.Hour)
	later.API.Status = got
	again, err := later.Status()
	if err != nil {
		t.Fatal(err)
	}
	if patch, err := patchOf("u1", &got, &again); err != nil || patch != nil {
		t.Errorf("a second merge changes the status: %s, %v", patch, err)
	}
	return got
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
		"a pod starts": {
			pod: spec("Always"), own: "{phase: Running}", want: "{phase: Running}",
		},
		"a pod ends": {
			pod: spec("Never") + "status: {phase: Running}", own: "{phase: Failed, reason: Evicted, message: why}",
			want: "{phase: Failed, reason: Evicted, message: why}",
		},
		"a container still runs": {
			pod:  spec("Never") + "status: {phase: Running}",
			own:  "{phase: Failed, reason: DeadlineExceeded, message: late, " + running + "}",
			want: "{phase: Running, reason: null, message: null}",
		},
		"a container may run": {
			pod:    spec("Never") + "status: {phase: Running, reason: r, message: m}",
			own:    "{phase: Succeeded}",
			mayRun: true,
			want:   "{phase: Running, reason: r, message: m}",
		},
		"a container may run in a new pod": {
			pod: spec("Never"), own: "{phase: Failed}", mayRun: true, want: "{phase: Pending}",
		},
		"a terminal phase is final": {
			pod:  spec("Never") + "status: {phase: Failed, reason: Evicted, message: why}",
			own:  "{phase: Running, reason: other}",
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
		"a pod initializes again in a new sandbox": {
			pod:  "spec: {initContainers: [{name: seed}], containers: [{name: app}]}\nstatus: {phase: Running}",
			own:  "{phase: Pending, initContainerStatuses: [{name: seed, containerID: c://2, state: {running: {}}}]}",
			want: "{phase: Pending}",
		},
		"a sidecar starts again": {
			pod: "spec: {initContainers: [{name: side, restartPolicy: Always}], containers: [{name: app}]}\n" +
				"status: {phase: Running}",
			own:  "{phase: Pending, initContainerStatuses: [{name: side, state: {waiting: {}}}]}",
			want: "{phase: Running}",
		},
	} {
		t.Run(name, c.run)
	}
}

// TestStartIsHidden checks the first status of a container that is created and not started: while a pass may start it,
// it is that of a container without a record.
func TestStartIsHidden(t *testing.T) {
	const inits, app = "spec: {initContainers: [{name: seed}], containers: [{name: app}]}\n", "spec: {containers: [{name: app}]}\n"
	for name, c := range map[string]struct {
		pod, container string
		mayRun         bool
		want           string
	}{
		"an init container":            {inits, "seed", true, "PodInitializing"},
		"a container":                  {app, "app", true, "ContainerCreating"},
		"a container that never ran":   {app, "app", false, ""},
		"an init container that waits": {inits, "seed", false, ""},
	} {
		own := []v1.ContainerStatus{{Name: c.container, ContainerID: "c://1", ImageID: "i", State: v1.ContainerState{Waiting: &v1.ContainerStateWaiting{}}}}
		m := &Merge{API: podFrom(t, c.pod), MayRun: c.mayRun, Now: noon()}
		m.Own.Phase, m.Own.ContainerStatuses = v1.PodPending, own
		if c.container == "seed" {
			m.Own.ContainerStatuses, m.Own.InitContainerStatuses = nil, own
		}
		got := mergeTwice(t, m)
		shown := append(got.InitContainerStatuses, got.ContainerStatuses...)[0]
		if shown.State.Waiting == nil || shown.State.Waiting.Reason != c.want || (shown.ContainerID == "") != c.mayRun {
			t.Errorf("%s: %+v", name, shown)
		}
	}
}

// TestMergeConditions checks which conditions podctl owns, and the time of their last change (kubelet:
// TestMergePodStatus, updateLastTransitionTime, TestReconcilePodStatus).
func TestMergeConditions(t *testing.T) {
	const gated = "spec: {readinessGates: [{conditionType: a/b}], containers: [{name: app}]}\n"
	for name, c := range map[string]struct {
		pod       string
		api, own  v1.PodPhase
		was, here []string
		mayRun    bool
		want      []string
	}{
		"others stay, and come first": {
			was:  []string{"Ready=False@11:00", "x/y=True r"},
			here: []string{"Ready=True"},
			want: []string{"x/y=True r", "Ready=True@12:00"},
		},
		"podctl never sets a condition of others": {here: []string{"x/y=True"}},
		"a time stays with the status": {
			was: []string{"ContainersReady=False@11:00"}, here: []string{"ContainersReady=False@12:00 r m"},
			want: []string{"ContainersReady=False@11:00 r m"},
		},
		"the recorded time of a change": {
			was:  []string{"Initialized=False@11:00"},
			here: []string{"Initialized=True@11:30"},
			want: []string{"Initialized=True@11:30"},
		},
		"a recorded time before the last change in the API": {
			was:  []string{"Initialized=False@11:00"},
			here: []string{"Initialized=True@10:30"},
			want: []string{"Initialized=True@12:00"},
		},
		"its own condition is removed": {was: []string{"PodResizeInProgress=True@11:00"}},
		"the disruption comes with the terminal phase": {
			own:  v1.PodFailed,
			was:  []string{"DisruptionTarget=False@11:00"},
			here: []string{"DisruptionTarget=True by-kubelet"},
			want: []string{"DisruptionTarget=True@12:00 by-kubelet"},
		},
		"and not before": {own: v1.PodFailed, here: []string{"DisruptionTarget=True by-kubelet"}, mayRun: true},
		"the disruption of others stays": {
			was: []string{"DisruptionTarget=True by-other"}, here: []string{"DisruptionTarget=True by-kubelet"},
			want: []string{"DisruptionTarget=True by-other"},
		},
		"a pod with a terminal phase is never ready": {
			api: v1.PodFailed, here: []string{"Ready=True", "ContainersReady=True"},
			want: []string{"Ready=False@12:00 PodFailed", "ContainersReady=False@12:00 PodFailed"},
		},
		"a gate of the API opens": {
			pod:  gated,
			was:  []string{"a/b=True"},
			here: []string{"Ready=False@11:00 ReadinessGatesNotReady m", "ContainersReady=True@11:00"},
			want: []string{"a/b=True", "Ready=True@12:00", "ContainersReady=True@11:00"},
		},
		"a gate of the API closes": {
			pod: gated, was: []string{"a/b=False"}, here: []string{"Ready=True", "ContainersReady=True"},
			want: []string{
				"a/b=False",
				"Ready=False@12:00 ReadinessGatesNotReady " +
					`the status of pod readiness gate "a/b" is not "True", but False`,
				"ContainersReady=True@12:00",
			},
		},
		"the order stays if nothing changes": {
			was:  []string{"ContainersReady=True@11:00", "x/y=True", "Ready=True@11:00"},
			here: []string{"Ready=True", "ContainersReady=True"},
			want: []string{"ContainersReady=True@11:00", "x/y=True", "Ready=True@11:00"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			api := podFrom(t, cmp.Or(c.pod, spec("Never")))
			api.Status.Phase, api.Status.Conditions = cmp.Or(c.api, v1.PodRunning), conditionsFrom(t, c.was)
			own := v1.PodStatus{Phase: cmp.Or(c.own, v1.PodRunning), Conditions: conditionsFrom(t, c.here)}
			got := mergeTwice(t, &Merge{API: api, Own: own, MayRun: c.mayRun, Now: noon()})
			if diff := gocmp.Diff(c.want, conditionTexts(got.Conditions)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// conditionsFrom reads conditions: "Ready=True@11:30#7 Reason the message", of 4 May 2026.
func conditionsFrom(t *testing.T, texts []string) (list []v1.PodCondition) {
	t.Helper()
	for _, text := range texts {
		var c v1.PodCondition
		head, rest, _ := strings.Cut(text, " ")
		c.Reason, c.Message, _ = strings.Cut(rest, " ")
		head, generation, _ := strings.Cut(head, "#")
		c.ObservedGeneration, _ = strconv.ParseInt(generation, 10, 64)
		head, at, timed := strings.Cut(head, "@")
		kind, status, _ := strings.Cut(head, "=")
		c.Type, c.Status = v1.PodConditionType(kind), v1.ConditionStatus(status)
		if timed {
			clock, err := time.Parse("2006-01-02 15:04", "2026-05-04 "+at)
			if err != nil {
				t.Fatal(err)
			}
			c.LastTransitionTime = metav1.NewTime(clock)
		}
		list = append(list, c)
	}
	return list
}

// conditionTexts is the inverse of conditionsFrom.
func conditionTexts(list []v1.PodCondition) (texts []string) {
	for _, c := range list {
		text := string(c.Type) + "=" + string(c.Status)
		if !c.LastTransitionTime.IsZero() {
			text += c.LastTransitionTime.Format("@15:04")
		}
		if c.ObservedGeneration != 0 {
			text += fmt.Sprint("#", c.ObservedGeneration)
		}
		texts = append(texts, strings.TrimSpace(strings.Join([]string{text, c.Reason, c.Message}, " ")))
	}
	return texts
}

// TestMergeGeneration checks that observed generations never go back, and that a mirror pod has none.
func TestMergeGeneration(t *testing.T) {
	const ready = "ContainersReady=True@11:00"
	for name, c := range map[string]struct {
		// status is the observed generation in the API, applied the one of the last pass, and object that of the pod.
		status    int64
		was, here string
		applied   int64
		object    int64
		mirror    bool
		// want is the generation of the status, and condition the condition.
		want      int64
		condition string
	}{
		"a new pod":      {was: ready, here: ready, applied: 1, want: 1, condition: ready + "#1"},
		"an edit":        {status: 1, was: ready + "#1", here: ready, applied: 2, want: 2, condition: ready + "#2"},
		"never back":     {status: 5, was: ready + "#4", here: ready, applied: 3, want: 5, condition: ready + "#4"},
		"a newer status": {status: 5, was: ready + "#2", here: ready, applied: 3, want: 5, condition: ready + "#3"},
		"a mirror pod":   {was: ready, here: ready, applied: 3, mirror: true, condition: ready},
		"an edit is lost": {
			status: 1, was: ready + "#1", here: ready, applied: 5, object: 1, want: 1, condition: ready + "#1",
		},
		"a resize has the generation that asks for it": {
			was:       ready,
			here:      "PodResizePending=True@11:00#2",
			applied:   3,
			want:      3,
			condition: "PodResizePending=True@11:00#2",
		},
	} {
		t.Run(name, func(t *testing.T) {
			api := podFrom(t, spec("Always"))
			api.Generation = c.object
			if c.mirror {
				api.Annotations = map[string]string{v1.MirrorPodAnnotationKey: "hash"}
			}
			api.Status = v1.PodStatus{
				Phase: v1.PodRunning, ObservedGeneration: c.status, Conditions: conditionsFrom(t, []string{c.was}),
			}
			own := v1.PodStatus{Phase: v1.PodRunning, Conditions: conditionsFrom(t, []string{c.here})}
			got := mergeTwice(t, &Merge{API: api, Own: own, Generation: c.applied, Now: noon()})
			if got.ObservedGeneration != c.want {
				t.Errorf("the status has generation %d", got.ObservedGeneration)
			}
			if diff := gocmp.Diff([]string{c.condition}, conditionTexts(got.Conditions)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// TestMergeContainers checks that ended containers change only if they may restart, and that counts and the end of the
// last run never go back (kubelet: TestCheckContainerStateTransition, convertToAPIContainerStatuses).
func TestMergeContainers(t *testing.T) {
	const (
		runs    = "app id=2 running"
		creates = "app waiting=ContainerCreating"
		sidecar = "spec: {restartPolicy: Never, initContainers: [{name: app, restartPolicy: Always}], containers: []}\n"
		ruled   = "spec: {restartPolicy: Never, containers: [{name: app%s}, {name: other%s}]}\n"
		rule    = ", restartPolicy: Never, restartPolicyRules: [{action: %s, exitCodes: {operator: In, values: [42]}}]"
	)
	single := fmt.Sprintf(ruled, fmt.Sprintf(rule, "Restart"), "")
	all := fmt.Sprintf(ruled, "", fmt.Sprintf(rule, "RestartAllContainers"))
	for name, c := range map[string]struct {
		pod, was, own string
		deleted       bool
		want          string
	}{
		"Always restarts": {"Always", "app id=1 count=2 ended=0", runs, false, "app id=2 count=3 running last=0"},
		"OnFailure restarts a failure": {
			"OnFailure",
			"app id=1 count=2 ended=1",
			runs,
			false,
			"app id=2 count=3 running last=1",
		},
		"OnFailure does not restart a success": {"OnFailure", "app id=1 ended=0", runs, false, "app id=1 ended=0"},
		"Never does not restart":               {"Never", "app id=1 ended=1", runs, false, "app id=1 ended=1"},
		"Never does not wait again":            {"Never", "app id=1 ended=1", creates, false, "app id=1 ended=1"},
		"a rule restarts": {
			single, "app id=1 ended=42", runs, false, "app id=2 count=1 running last=42",
		},
		"a rule does not":   {single, "app id=1 ended=41", runs, false, "app id=1 ended=41"},
		"a rule of another": {all, "app id=1 ended=1", runs, false, "app id=2 count=1 running last=1"},
		"a sidecar restarts": {
			sidecar, "app id=1 ended=0", runs, false, "app id=2 count=1 running last=0",
		},
		"a debug container does not": {
			"spec: {ephemeralContainers: [{name: app}]}\n", "app id=1 ended=1", runs, false, "app id=1 ended=1",
		},
		"counts do not go back": {"Always", "app id=1 count=5 running", runs, false, "app id=2 count=5 running"},
		"a higher count": {
			"Always",
			"app id=1 ended=1",
			"app id=2 count=1 running",
			false,
			"app id=2 count=1 running last=1",
		},
		"the last end stays": {
			"Always",
			"app id=2 count=1 running last=3",
			runs,
			false,
			"app id=2 count=1 running last=3",
		},
		"an ended record is lost":                 {"Always", "app id=1 count=2 ended=3", creates, false, "app id=1 count=2 ended=3"},
		"a running record is lost":                {"Always", runs, creates, false, "app count=1 waiting=ContainerCreating last=137"},
		"a running record is lost while deleting": {"Always", runs, creates, true, "app waiting=ContainerCreating last=137"},
		"a failed start is tried again": {
			"Always", "app id=1 waiting=RunContainerError", creates, false, "app id=1 waiting=RunContainerError",
		},
		"a failed start has another reason": {
			"Always", "app id=1 waiting=RunContainerError", "app waiting=ErrImagePull", false, "app id=1 waiting=ErrImagePull",
		},
		"a failed pull": {
			"Always", "app id=1 count=2 ended=3", "app waiting=ImagePullBackOff", false,
			"app count=2 waiting=ImagePullBackOff last=3",
		},
	} {
		t.Run(name, func(t *testing.T) {
			text := c.pod
			if !strings.HasPrefix(text, "spec:") {
				text = spec(text)
			}
			api, own := podFrom(t, text), v1.PodStatus{Phase: v1.PodRunning}
			api.Status.Phase = v1.PodRunning
			if c.deleted {
				api.DeletionTimestamp = &metav1.Time{Time: noon()}
			}
			*listOf(api, &api.Status) = []v1.ContainerStatus{containerFrom(t, c.was)}
			*listOf(api, &own) = []v1.ContainerStatus{containerFrom(t, c.own)}
			got := mergeTwice(t, &Merge{API: api, Own: own, Now: noon()})
			if text := containerText(&(*listOf(api, &got))[0]); text != c.want {
				t.Errorf("%s\nwant %s", text, c.want)
			}
		})
	}
}

// TestMergeMirror checks that a container that runs again without records of its earlier runs counts as restarted.
func TestMergeMirror(t *testing.T) {
	for name, c := range map[string]struct{ was, own, want string }{
		"its end was not sent": {"app id=1 running", "app id=2 running", "app id=2 count=1 running"},
		"its end was sent":     {"app id=1 count=2 ended=0", "app id=2 running", "app id=2 count=3 running last=0"},
		"it still runs":        {"app id=1 count=2 running", "app id=1 running", "app id=1 count=2 running"},
		"it is counted":        {"app id=1 running", "app id=2 count=1 running", "app id=2 count=1 running"},
	} {
		api, own := podFrom(t, spec("Always")), v1.PodStatus{Phase: v1.PodRunning}
		api.Status.Phase = v1.PodRunning
		api.Annotations = map[string]string{v1.MirrorPodAnnotationKey: "hash"}
		api.Status.ContainerStatuses = []v1.ContainerStatus{containerFrom(t, c.was)}
		own.ContainerStatuses = []v1.ContainerStatus{containerFrom(t, c.own)}
		got := mergeTwice(t, &Merge{API: api, Own: own, Now: noon()})
		if text := containerText(&got.ContainerStatuses[0]); text != c.want {
			t.Errorf("%s: %s, want %s", name, text, c.want)
		}
	}
}

// TestMergeAwaitsThePass checks that the end of a container is not sent while the running pass may start it again although
// its restart policy says no: the API server refuses a container that runs after such an end.
func TestMergeAwaitsThePass(t *testing.T) {
	for name, c := range map[string]struct {
		policy, own string
		passRuns    bool
		want        string
	}{
		"Never during a pass":    {"Never", "app id=1 ended=1", true, "app id=1 running"},
		"Never after the pass":   {"Never", "app id=1 ended=1", false, "app id=1 ended=1"},
		"success during a pass":  {"OnFailure", "app id=1 ended=0", true, "app id=1 running"},
		"failure during a pass":  {"OnFailure", "app id=1 ended=1", true, "app id=1 ended=1"},
		"replaced during a pass": {"Never", "app id=2 count=1 running", true, "app id=2 count=1 running"},
		"Always shows every end": {"Always", "app id=1 ended=0", true, "app id=1 ended=0"},
		"created during a pass":  {"Always", "app id=2 count=1 waiting=", true, "app id=1 running"},
		"created after the pass": {"Always", "app id=2 count=1 waiting=", false, "app id=2 count=1 waiting="},
	} {
		t.Run(name, func(t *testing.T) {
			api, own := podFrom(t, spec(c.policy)), v1.PodStatus{Phase: v1.PodRunning}
			api.Status.Phase = v1.PodRunning
			api.Status.ContainerStatuses = []v1.ContainerStatus{containerFrom(t, "app id=1 running")}
			api.Status.ContainerStatuses[0].Ready = true
			own.ContainerStatuses = []v1.ContainerStatus{containerFrom(t, c.own)}
			got := mergeTwice(t, &Merge{API: api, Own: own, MayRun: c.passRuns, Now: noon()}).ContainerStatuses[0]
			if text := containerText(&got); text != c.want || got.Ready {
				t.Errorf("%s, ready: %t\nwant %s, not ready", text, got.Ready, c.want)
			}
		})
	}
}

// listOf returns the list that has the status of the first container of a pod.
func listOf(pod *v1.Pod, s *v1.PodStatus) *[]v1.ContainerStatus {
	switch {
	case len(pod.Spec.InitContainers) > 0:
		return &s.InitContainerStatuses
	case len(pod.Spec.EphemeralContainers) > 0:
		return &s.EphemeralContainerStatuses
	}
	return &s.ContainerStatuses
}

// containerFrom reads the status of a container: "app id=1 count=2 ended=3 last=4".
func containerFrom(t *testing.T, text string) (s v1.ContainerStatus) {
	t.Helper()
	for i, word := range strings.Fields(text) {
		key, value, _ := strings.Cut(word, "=")
		number, _ := strconv.Atoi(value)
		end := &v1.ContainerStateTerminated{ExitCode: int32(number)} // small
		switch {
		case i == 0:
			s.Name = word
		case key == "id":
			s.ContainerID = value
		case key == "count":
			s.RestartCount = int32(number) // small
		case key == "running":
			s.State.Running = &v1.ContainerStateRunning{}
		case key == "waiting":
			s.State.Waiting = &v1.ContainerStateWaiting{Reason: value}
		case key == "ended":
			s.State.Terminated = end
		case key == "last":
			s.LastTerminationState.Terminated = end
		default:
			t.Fatalf("%q in %q", word, text)
		}
	}
	return s
}

// containerText is the inverse of containerFrom.
func containerText(s *v1.ContainerStatus) string {
	words := []string{s.Name}
	add := func(present bool, key string, value any) {
		if present {
			words = append(words, fmt.Sprint(key, value))
		}
	}
	add(s.ContainerID != "", "id=", s.ContainerID)
	add(s.RestartCount != 0, "count=", s.RestartCount)
	add(s.State.Running != nil, "running", "")
	if s.State.Waiting != nil {
		add(true, "waiting=", s.State.Waiting.Reason)
	}
	if end := s.State.Terminated; end != nil {
		add(true, "ended=", end.ExitCode)
	}
	if end := s.LastTerminationState.Terminated; end != nil {
		add(true, "last=", end.ExitCode)
	}
	return strings.Join(words, " ")
}

// TestMergeKeeps checks the fields that podctl does not own, that never change, or that outlive the sandbox.
func TestMergeKeeps(t *testing.T) {
	const started = `"2026-05-04T11:00:00Z"`
	for name, c := range map[string]mergeCase{
		"claims and the nominated node": {
			pod: spec("Always") +
				"status: {phase: Running, resourceClaimStatuses: [{name: a, resourceClaimName: b}], " +
				"extendedResourceClaimStatus: {requestMappings: [], resourceClaimName: c}, nominatedNodeName: node1}",
			own: "{phase: Running, nominatedNodeName: other}",
			want: "{resourceClaimStatuses: [{name: a, resourceClaimName: b}], nominatedNodeName: node1, " +
				"extendedResourceClaimStatus: {requestMappings: [], resourceClaimName: c}}",
		},
		"the start time": {
			pod:  spec("Always") + "status: {phase: Running, startTime: " + started + "}",
			own:  `{phase: Running, startTime: "2026-05-04T11:30:00Z"}`,
			want: "startTime: " + started,
		},
		"a new start time": {
			pod:  spec("Always"),
			own:  `{phase: Running, startTime: ` + started + `}`,
			want: "startTime: " + started,
		},
		"no start time": {pod: spec("Always"), own: `{phase: Pending}`, want: `startTime: "2026-05-04T12:00:00Z"`},
		"the class": {
			pod:  spec("Always") + "status: {qosClass: Burstable}",
			own:  "{phase: Running, qosClass: BestEffort}",
			want: "qosClass: Burstable",
		},
		"the addresses of a pod that ends": {
			pod: "metadata: {deletionTimestamp: '2026-05-04T11:00:00Z'}\n" + spec("Always") +
				"status: {phase: Running, podIP: 10.0.0.2, podIPs: [{ip: 10.0.0.2}], hostIP: 192.0.2.1, " +
				"hostIPs: [{ip: 192.0.2.1}]}",
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
		API: podFrom(t, spec("Always")),
		Own: statusFrom(t, "{phase: Running, conditions: [{type: ContainersReady, status: 'True'}]}"),
		Now: noon(),
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
	if diff := gocmp.Diff(first.Conditions, second.Conditions); diff != "" {
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
			{
				Name: "b",
				State: v1.ContainerState{
					Terminated: &v1.ContainerStateTerminated{StartedAt: at, FinishedAt: at, Message: "x" + long},
				},
			},
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
		"start":      s.StartTime.Time,
		"transition": s.Conditions[0].LastTransitionTime.Time,
		"probe":      s.Conditions[0].LastProbeTime.Time,
		"end":        b.State.Terminated.FinishedAt.Time, "begin": b.State.Terminated.StartedAt.Time,
	} {
		if !got.Equal(whole) {
			t.Errorf("%s: %s", name, got)
		}
	}
	for name, c := range map[string]struct {
		text string
		want int
	}{
		"status":    {s.Message, 12 << 10},
		"condition": {s.Conditions[0].Message, 12 << 10},
		"waiting":   {a.State.Waiting.Message, 12 << 10},
		"last":      {a.LastTerminationState.Terminated.Message, 4 << 10},
		"ended":     {b.State.Terminated.Message, 4<<10 - 1},
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
	before := statusFrom(t,
		"{phase: Pending, qosClass: Burstable, conditions: [{type: PodScheduled, status: 'True'}, {type: x/y, "+
			"status: 'True'}]}")
	after := statusFrom(t,
		"{phase: Running, qosClass: Burstable, conditions: [{type: x/y, status: 'True'}, {type: PodScheduled, "+
			"status: 'True'}, {type: Ready, status: 'True'}]}")
	patch, err := patchOf("u1", &before, &after)
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"metadata":{"uid":"u1"},"status":{` +
		`"$setElementOrder/conditions":[{"type":"x/y"},{"type":"PodScheduled"},{"type":"Ready"}],` +
		`"conditions":[{"lastProbeTime":null,"lastTransitionTime":null,"status":"True","type":"Ready"}],` +
		`"phase":"Running"}}`
	if string(patch) != want {
		t.Errorf("%s\nwant %s", patch, want)
	}
	if patch, err = patchOf("u1", &after, after.DeepCopy()); err != nil || patch != nil {
		t.Errorf("equal statuses give %s, %v", patch, err)
	}
}
