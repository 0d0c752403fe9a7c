package controllers

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/agent/declared"
	"github.com/podctl/podctl/runtime/agent/sources"
	"github.com/podctl/podctl/runtime/controller"
	"github.com/podctl/podctl/runtime/service"
)

// unread is a store of workloads that cannot be read while err is set.
type unread struct {
	Workloads

	err error
	// reads counts how often all workloads were read.
	reads int
}

func (u *unread) All() ([]*controller.Record, error) {
	u.reads++
	if u.err != nil {
		return nil, u.err
	}
	return u.Workloads.All()
}

// refusing is a store of objects that fails to store while err is set.
type refusing struct {
	declared.Objects

	err error
}

func (r *refusing) Apply(ctx context.Context, o *podspec.Object) error {
	if r.err != nil {
		return r.err
	}
	return r.Objects.Apply(ctx, o)
}

// TestRemovedWhileUnread checks that the workload of a file that is removed while the store is unreadable is deleted as
// soon as the store is readable.
func TestRemovedWhileUnread(t *testing.T) {
	h := newHouse(t)
	store := &unread{Workloads: h.Workloads}
	h.declared.Workloads = store
	h.files["/one"]["a"] = deployment("web", "1")
	h.reads("/one", "/two")
	h.wants("at first", "deployment web:1@/one/a")
	h.later(sources.DropDelay)
	h.looks()
	store.err = errors.New("no file descriptors")
	h.files["/one"] = nil
	h.reads("/one")
	h.later(sources.DropDelay)
	if again := h.declared.Store(t.Context()); !again.After(h.now) {
		t.Error("it is not tried again")
	}
	store.err = nil
	h.wants("read again", "")
}

// TestUnreadBeforeAllSources checks that unreadable records are not overwritten before all sources have been read.
func TestUnreadBeforeAllSources(t *testing.T) {
	h := newHouse(t)
	h.files["/one"]["a"], h.files["/two"]["b"] = deployment("web", "1"), deployment("web", "2")
	h.reads("/one", "/two")
	h.wants("at first", "deployment web:1@/one/a")
	h.starts()
	store := &unread{Workloads: h.Workloads, err: errors.New("no file descriptors")}
	h.declared.Workloads = store
	h.reads("/two")
	h.declared.Store(t.Context())
	store.err = nil
	h.wants("read again", "deployment web:1@/one/a")
}

// TestTakenPort checks that a Service whose port is in use is retried, because there is no event when the port becomes
// free.
func TestTakenPort(t *testing.T) {
	h := newHouse(t)
	store := &refusing{Objects: h.declared.Objects, err: &service.TakenError{}}
	h.declared.Objects = store
	h.files["/one"]["a"] = webService
	h.reads("/one", "/two")
	h.later(sources.DropDelay)
	if again := h.declared.Store(t.Context()); !again.After(h.now) {
		t.Error("it is not tried again")
	}
	store.err = nil
	h.wants("the port is free", "service web:@/one/a")
}

// TestDamagedRecord checks that an unreadable record does not delay other workloads. Its pods stay wanted. An agent
// that does not keep objects applied by hand must assume that these pods may be such objects.
func TestDamagedRecord(t *testing.T) {
	h := newHouse(t)
	h.applies(deployment("mine", "1"))
	h.files["/one"]["a"] = deployment("web", "1")
	h.reads("/one", "/two")
	first := h.looks()
	found, err := filepath.Glob(filepath.Join(h.layout.Root, "workloads/default/deployments/mine*"))
	if err != nil || len(found) != 1 {
		t.Fatal(found, err)
	}
	if err = os.WriteFile(found[0], []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	h.files["/one"]["b"] = deployment("new", "1")
	h.reads("/one")
	h.declared.Store(t.Context())
	u, _, err := h.expandAll(t.Context())
	if err == nil || len(u.Pods) != len(first.Pods)+1 {
		t.Errorf("%d pods, before %d: %v", len(u.Pods), len(first.Pods), err)
	}
	h.files["/one"] = nil
	h.reads("/one")
	h.later(sources.DropDelay)
	h.declared.Store(t.Context())
	records, err := h.declared.Workloads.All()
	if err == nil || len(records) != 0 {
		t.Errorf("%d workloads of files are left: %v", len(records), err)
	}
	h.ByHand = false
	for _, d := range first.Pods {
		if strings.HasPrefix(d.Pod.Name, "mine") && !h.Ignores(d) {
			t.Errorf("%s is not left alone", d.Pod.Name)
		}
	}
	h.later(time.Second)
}

// TestSourceFileAppliedByHand checks that an object that a user applies from the file of a source still belongs to the
// source, so that it ends with the file.
func TestSourceFileAppliedByHand(t *testing.T) {
	h := newHouse(t)
	h.files["/one"]["a"] = deployment("web", "1") + separator + webService
	h.reads("/one", "/two")
	const want = "deployment web:1@/one/a, service web:@/one/a"
	h.wants("at first", want)
	h.appliesFrom("/one/a", h.files["/one"]["a"])
	if got := h.kept(); got != want {
		t.Errorf("applied by hand: %q, want %q", got, want)
	}
}

// saying is a source with one update.
type saying struct {
	sources.Source

	update sources.Update
}

func (s *saying) Rules() sources.Rules { return sources.Rules{} }

func (s *saying) Name() string { return s.update.Source }

func (s *saying) Run(_ context.Context, _ <-chan chan struct{}, notify func(sources.Update)) {
	notify(s.update)
}

// TestServicesComeFirst checks that the Services of a source are stored before its pods are reported.
func TestServicesComeFirst(t *testing.T) {
	h := newHouse(t)
	h.files["/one"]["a"] = webService
	h.texts["/one"].Take(h.now, sources.Reading{Texts: []sources.Text{{Name: "/one/a", Text: []byte(webService)}}})
	u, _ := h.texts["/one"].Wanted(h.now)
	u.Source = "/three"
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		h.Run(ctx, nil, func(sources.Update) {})
	}()
	reported := false
	h.Wrap(&saying{update: u}).Run(ctx, nil, func(sources.Update) {
		reported = true
		if got := h.kept(); got != "service web:@/one/a" {
			t.Errorf("stored is %q", got)
		}
	})
	stop()
	<-done
	if !reported {
		t.Error("the agent is not notified")
	}
}

// TestIgnoresReadsOnce checks that Ignores reads the workloads once for many pods while no workload changes.
func TestIgnoresReadsOnce(t *testing.T) {
	h := newHouse(t)
	h.applies(deployment("mine", "1"))
	h.reads("/one", "/two")
	pods := h.looks().Pods
	store := &unread{Workloads: h.Workloads}
	h.Workloads, h.ByHand = store, false
	for range 10 {
		for _, d := range pods {
			if !h.Ignores(d) {
				t.Errorf("%s is not left alone", d.Pod.Name)
			}
		}
	}
	if store.reads != 1 {
		t.Errorf("read %d times", store.reads)
	}
	h.files["/one"]["a"] = deployment("web", "1")
	h.reads("/one")
	h.looks()
	before := store.reads
	if h.Ignores(pods[0]); store.reads != before+1 {
		t.Error("a change is not read")
	}
}
