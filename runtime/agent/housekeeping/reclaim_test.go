package housekeeping

import (
	"os"
	"slices"
	"testing"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podctl/podctl/runtime/model"
)

// TestReclaim checks a disk that runs full. The logs of deleted pods and the records of earlier runs are removed at
// once, as are unused images and those of evicted pods. Needed objects stay (kubelet: TestNodeReclaimFuncs).
func TestReclaim(t *testing.T) {
	l := newLab(t, Settings{MaxRecords: -1})
	ref, sandbox := l.pod("web", "used.local/u:1")
	evicted, _ := l.pod("evicted", "evicted.local/e:1")
	for _, name := range []string{"a.local/a:1", "used.local/u:1", "evicted.local/e:1"} {
		l.pull(name)
	}
	l.run(ref, sandbox, "used.local/u:1", 0)
	l.server.Exit("a", 1)
	id, _ := l.run(ref, sandbox, "used.local/u:1", 1)
	logs := l.layout.Pod(evicted.UID).Logs("default", "old")
	if err := logs.Make("a"); err != nil {
		t.Fatal(err)
	}
	if err := logs.Archive(l.clock.Now()); err != nil {
		t.Fatal(err)
	}
	c, err := l.layout.Pod(evicted.UID).Checkpoint().Read()
	if err != nil {
		t.Fatal(err)
	}
	c.Eviction = &model.Eviction{Message: "low", Signal: "imagefs.available"}
	if err = l.layout.Pod(evicted.UID).Checkpoint().Write(c); err != nil {
		t.Fatal(err)
	}
	if _, lines := l.calls(recordTask); lines != "" {
		t.Errorf("as long as there is room: %s", lines)
	}
	l.calls(imageTask)
	l.clock.Advance(5 * time.Minute)
	if err = l.RemoveGarbage(t.Context()); err != nil {
		t.Error(err)
	}
	reply, err := l.client.ListContainers(t.Context(), &runtimeapi.ListContainersRequest{})
	if err != nil {
		t.Fatal(err)
	}
	var left []string
	for _, one := range reply.GetContainers() {
		left = append(left, one.GetId())
	}
	old, err := l.layout.DeletedLogs().List()
	if len(old) > 0 || err != nil || !slices.Equal(left, []string{id}) {
		t.Errorf("left are containers %v and logs %v, %v", left, old, err)
	}
	if err = l.RemoveImages(t.Context()); err != nil || l.present() != "i:1 used.local/u:1" {
		t.Errorf("left are images %s, %v", l.present(), err)
	}
	if _, err = os.Stat(l.layout.Pod(evicted.UID).Checkpoint().Path()); err != nil {
		t.Error(err)
	}
}
