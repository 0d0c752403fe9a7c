package state

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/podctl/podctl/runtime/filelock"
	"github.com/podctl/podctl/runtime/state/podlogs"
)

func TestLeftovers(t *testing.T) {
	l := Layout{Root: filepath.Join(t.TempDir(), "state"), LogRoot: t.TempDir()}
	if uids, err := l.Pods().Leftovers(); err != nil || uids != nil {
		t.Errorf("of nothing: %v %v", uids, err)
	}
	if err := l.Pod("known").Checkpoint().Write(&Checkpoint{}); err != nil {
		t.Fatal(err)
	}
	if err := l.Pod("gone").MakeDir(l.Pod("gone").Volumes(), 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(l.Root, "pods", "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if uids, err := l.Pods().Leftovers(); err != nil || len(uids) != 1 || uids[0] != "gone" {
		t.Errorf("%v %v", uids, err)
	}
	for uid, want := range map[types.UID]bool{"known": true, "gone": false} {
		if got, err := l.Pod(uid).Checkpoint().Exists(); err != nil || got != want {
			t.Errorf("%s has a checkpoint: %t %v", uid, got, err)
		}
	}
	if has, err := l.Pod("gone").HasDir(); err != nil || !has || l.Pod("gone").DirSize() == 0 {
		t.Errorf("%t %v, %d bytes", has, err, l.Pod("gone").DirSize())
	}
}

func TestDeletedLogs(t *testing.T) {
	l := Layout{Root: t.TempDir(), LogRoot: t.TempDir()}
	pod := l.Pod("u-1")
	if err := pod.Logs("default", "web.a").Make("app"); err != nil {
		t.Fatal(err)
	}
	file := ok(pod.Logs("default", "web.a").File("app", 2))
	if err := os.WriteFile(file, []byte("hello"), 0o600); err != nil {
		t.Fatal(err)
	}
	if pod.Logs("default", "web.a").Size("app", 2) == 0 || pod.Logs("default", "web.a").Size("app", 1) != 0 {
		t.Error("the size of the logs of an attempt")
	}
	if err := pod.Logs("default", "web.a").Archive(time.Date(2026, 5, 4, 1, 2, 3, 0, time.UTC)); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(l.DeletedLogs().Dir(), "of-another-program"), 0o700); err != nil {
		t.Fatal(err)
	}
	logs, err := l.DeletedLogs().List()
	if err != nil || len(logs) != 1 {
		t.Fatalf("%+v %v", logs, err)
	}
	if d := logs[0]; d.Namespace != "default" || d.Name != "web.a" || d.UID != "u-1" || d.At.Minute() != 2 {
		t.Errorf("%+v", d)
	}
	if err := l.DeletedLogs().Remove(podlogs.Log{Path: l.LogRoot}); err == nil {
		t.Error("something else was removed")
	}
	if err := l.DeletedLogs().Remove(logs[0]); err != nil {
		t.Error(err)
	}
	if logs, err := l.DeletedLogs().List(); err != nil || len(logs) != 0 {
		t.Errorf("%+v %v", logs, err)
	}
}

// TestUnfinishedStores kills processes while they replace a shared file.
func TestUnfinishedStores(t *testing.T) {
	l := Layout{Root: filepath.Join(t.TempDir(), "state"), LogRoot: t.TempDir()}
	locker := &Locker{Layout: l}
	for what, of := range map[string]struct {
		unfinished, name string
		lock             func(context.Context) (*filelock.Lock, error)
	}{
		"objects":   {l.Objects().unfinished(), lockObjects, locker.LockObjects},
		"workloads": {l.Workloads().unfinished(), lockWorkloads, locker.LockWorkloads},
		"services":  {l.ServiceNames().unfinished(), lockServices, locker.LockServices},
		"localnet":  {l.Localnet().unfinished(), lockServices, locker.LockServices},
	} {
		kill := func() {
			t.Helper()
			if err := errors.Join(
				os.MkdirAll(filepath.Dir(of.unfinished), 0o700),
				os.WriteFile(of.unfinished, []byte("half"), 0o600),
			); err != nil {
				t.Fatal(err)
			}
		}
		kill()
		lock, err := of.lock(t.Context())
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if is, lookErr := l.dir().Exists(of.unfinished); is || lookErr != nil {
			t.Errorf("%s: what a killed process left is there when the lock is taken: %v", what, lookErr)
		}
		kill()
		if err = lock.Unlock(); err != nil {
			t.Fatal(err)
		}
		if err = os.WriteFile(l.Locks().file(of.name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err = l.Locks().Sweep(t.Context()); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		if is, lookErr := l.dir().Exists(of.unfinished); is || lookErr != nil {
			t.Errorf("%s: what a killed process left is there after the start of an agent: %v", what, lookErr)
		}
	}
}
