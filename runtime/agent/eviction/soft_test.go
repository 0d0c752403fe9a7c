package eviction

import (
	"fmt"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
)

// shown describes a threshold in one word.
func (t *Threshold) shown() string {
	text := string(t.Signal) + "<" + t.Value()
	if t.Grace > 0 {
		text += fmt.Sprintf("/%s", t.Grace)
	}
	if reclaim := t.MinReclaim.Value(); reclaim != "0%" {
		text += "+" + reclaim
	}
	return text
}

func shown(all []Threshold) string {
	var texts []string
	for i := range all {
		texts = append(texts, all[i].shown())
	}
	return strings.Join(texts, " ")
}

// TestTexts covers the kubelet's cases with soft thresholds and minimum reclaims in TestParseThresholdConfig.
func TestTexts(t *testing.T) {
	for name, c := range map[string]struct {
		texts Texts
		want  string
	}{
		"nothing": {},
		"hard before soft, by signal": {
			Texts{"nodefs.available<1Gi,memory.available<150Mi", "memory.available<300Mi", "memory.available=30s", ""},
			"memory.available<150Mi memory.available<300Mi/30s nodefs.available<1Gi",
		},
		"reclaims of both": {
			Texts{"memory.available<10%", "memory.available<30%", "memory.available=1m30s", "memory.available=5%"},
			"memory.available<10%+5% memory.available<30%/1m30s+5%",
		},
		"amounts": {
			Texts{"imagefs.available<15%,pid.available<10", "", "", "imagefs.available=2Gi,pid.available=0"},
			"imagefs.available<15%+2Gi pid.available<10+0",
		},
		"no grace period":    {Texts{Soft: "memory.available<1Gi"}, "grace period must be specified for the soft eviction threshold memory.available"},
		"no soft threshold":  {Texts{Hard: "memory.available<1Gi", SoftGracePeriod: "memory.available=1s"}, "memory.available has no soft threshold"},
		"no threshold":       {Texts{MinimumReclaim: "pid.available=1"}, "pid.available has no threshold"},
		"negative period":    {Texts{Soft: "pid.available<1", SoftGracePeriod: "pid.available=-1s"}, "must not be negative"},
		"no duration":        {Texts{Soft: "pid.available<1", SoftGracePeriod: "pid.available=1"}, "missing unit"},
		"negative reclaim":   {Texts{Hard: "pid.available<1", MinimumReclaim: "pid.available=-1"}, "must not be negative"},
		"too much reclaim":   {Texts{Hard: "pid.available<1", MinimumReclaim: "pid.available=101%"}, "must be between 0% and 100%"},
		"not a percentage":   {Texts{Hard: "pid.available<1", MinimumReclaim: "pid.available=NaN%"}, "must be between 0% and 100%"},
		"unknown signal":     {Texts{SoftGracePeriod: "mem=1s"}, "--eviction-soft-grace-period: unsupported eviction signal mem"},
		"a wrong separator":  {Texts{MinimumReclaim: "pid.available<1"}, "does not have the form SIGNAL=QUANTITY"},
		"a soft one, twice":  {Texts{Soft: "pid.available<1,pid.available<2"}, "--eviction-soft: pid.available is given twice"},
		"a wrong hard value": {Texts{Hard: "pid.available<x"}, "--eviction-hard: "},
	} {
		all, err := c.texts.Parse()
		if got := shown(all); got != c.want && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %s %v, want %s", name, got, err, c.want)
		}
	}
}

// TestTracker covers the kubelet's TestThresholdsFirstObservedAt, TestThresholdsMetGracePeriod, TestMinReclaim and
// TestHasThreshold: pods are evicted once a soft threshold was met for its grace period, and until its minimum reclaim
// is available. The condition of the node does not wait for the grace period.
func TestTracker(t *testing.T) {
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	type step struct {
		after time.Duration
		left  int64
		// want are the thresholds that are met. Those of them for which pods are evicted have a star.
		want string
	}
	for name, c := range map[string]struct {
		texts Texts
		steps []step
	}{
		"a soft threshold": {
			Texts{"memory.available<10", "memory.available<20", "memory.available=1m", ""},
			[]step{
				{0, 20, ""},
				{time.Second, 19, "20"},
				{59 * time.Second, 19, "20"},
				{61*time.Second - 1, 19, "20"},
				{61 * time.Second, 19, "20*"},
				{62 * time.Second, 9, "10* 20*"},
				{63 * time.Second, 20, ""},
				{64 * time.Second, 19, "20"},
			},
		},
		"an interruption starts it again": {
			Texts{"", "memory.available<20", "memory.available=1m", ""},
			[]step{{0, 19, "20"}, {30 * time.Second, 20, ""}, {61 * time.Second, 19, "20"}, {121 * time.Second, 19, "20*"}},
		},
		"an unknown value interrupts it too": {
			Texts{"", "memory.available<20", "memory.available=1m", ""},
			[]step{{0, 19, "20"}, {30 * time.Second, -1, ""}, {61 * time.Second, 19, "20"}},
		},
		"a minimum reclaim of a hard threshold": {
			Texts{"memory.available<10", "", "", "memory.available=5"},
			[]step{{0, 14, ""}, {1, 9, "10*"}, {2, 14, "10*"}, {3, 15, ""}, {4, 14, ""}},
		},
		"a minimum reclaim of a soft threshold": {
			Texts{"", "memory.available<10", "memory.available=1m", "memory.available=5%"},
			[]step{
				{0, 9, "10"},
				{time.Second, 14, ""},
				{2 * time.Second, 9, "10"},
				{time.Hour, 9, "10*"},
				{time.Hour + 1, 14, "10*"},
				{time.Hour + 2, 15, ""},
			},
		},
		"a clock that is set back": {
			Texts{"", "memory.available<20", "memory.available=1m", ""},
			[]step{{time.Hour, 19, "20"}, {0, 19, "20"}, {time.Minute, 19, "20*"}},
		},
	} {
		all, err := c.texts.Parse()
		if err != nil {
			t.Fatal(err)
		}
		track := newTracker(all)
		for i, s := range c.steps {
			look := &Measurement{Left: amounts(map[Signal]Amount{MemoryAvailable: {s.left, 100}})}
			if s.left < 0 {
				look = &Measurement{}
			}
			met, due := track.update(start.Add(s.after), look)
			var texts []string
			for _, m := range met {
				text := m.Value()
				for _, d := range due {
					if d.Value() == text {
						text += "*"
					}
				}
				texts = append(texts, text)
			}
			if got := strings.Join(texts, " "); got != s.want {
				t.Errorf("%s, step %d: %s, want %s", name, i, got, s.want)
			}
		}
	}
}

// TestSoftEviction covers the kubelet's TestMemoryPressure and TestMinReclaim: the condition of the node comes first,
// then the eviction with the grace period of the pod, which has a limit.
func TestSoftEviction(t *testing.T) {
	l := newLab(t)
	l.settings.MaxGrace = 30
	all, err := Texts{"memory.available<100Mi", "memory.available<200Mi", "memory.available=30s", "memory.available=300Mi"}.Parse()
	if err != nil {
		t.Fatal(err)
	}
	l.tracker = newTracker(all)
	l.pod("a", 0, 100)
	l.pod("b", 0, 200)
	l.pod("c", 0, 300)
	for _, pod := range l.pods {
		pod.Spec.TerminationGracePeriodSeconds = new(int64(60))
	}
	l.pods[2].Spec.TerminationGracePeriodSeconds = new(int64(7))
	l.give(MemoryAvailable, 150-1024)
	if got := l.looks(t, 3); got != "[MemoryPressure]" {
		t.Errorf("before the grace period: %s", got)
	}
	if got := l.looks(t, 1); got != "evict c" || l.why.GracePeriodSeconds != 7 ||
		l.why.Message != "The node was low on resource: memory. Threshold quantity: 200Mi, available: 150Mi. "+
			"Container a was using 300Mi, request is 0, has larger consumption of memory. " {
		t.Errorf("%s, %+v", got, l.why)
	}
	if got := l.looks(t, 2); got != "evict b" || l.why.GracePeriodSeconds != 30 {
		t.Errorf("below the minimum reclaim: %s, %+v", got, l.why)
	}
	l.give(MemoryAvailable, -600)
	if got := l.looks(t, 1); got != "evict a" || l.why.GracePeriodSeconds != 0 {
		t.Errorf("the hard threshold: %s, %+v", got, l.why)
	}
}

// TestReclaimOfGarbage checks that pods are evicted unless the removal of garbage also gives the minimum reclaim.
func TestReclaimOfGarbage(t *testing.T) {
	for garbage, want := range map[int64]string{
		10: "[DiskPressure], garbage, images, evict a",
		15: "[DiskPressure], garbage, images",
	} {
		l := newLab(t)
		all, err := Texts{Hard: "nodefs.available<10%", MinimumReclaim: "nodefs.available=10%"}.Parse()
		if err != nil {
			t.Fatal(err)
		}
		l.tracker, l.garbage = newTracker(all), garbage
		l.pod("a", 0, 1)
		l.give(NodeFsAvailable, -45)
		if got := l.looks(t, 1); got != want {
			t.Errorf("%d MiB of garbage: %s, want %s", garbage, got, want)
		}
	}
}

// TestTransition checks that a condition of the node lasts as long as it is set.
func TestTransition(t *testing.T) {
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	met := []Threshold{{Signal: MemoryAvailable}}
	for after, want := range map[time.Duration]int{0: 0, time.Minute: 1} {
		p := Pressure{}
		if now := p.Update(start, after, met); len(now) != 1 || now[0] != v1.NodeMemoryPressure {
			t.Errorf("%s: %v", after, now)
		}
		if now := p.Update(start.Add(time.Minute-1), after, nil); len(now) != want {
			t.Errorf("%s: %v, want %d", after, now, want)
		}
	}
}
