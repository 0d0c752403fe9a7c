package state

import (
	"os"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/podspec/digest"
	"github.com/podctl/podctl/runtime/model"
)

// clusterPod returns a pod of the API server with a Secret that has a value.
func clusterPod(value string) *podspec.Desired {
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "web", UID: testUID}}
	d := podspec.New(pod, podspec.OwnerAPI, pod.UID)
	d.Owner, d.MemorySecrets = podspec.OwnerAPI, true
	d.Objects.Secrets = map[string]*v1.Secret{"s": {Data: map[string][]byte{"k": []byte(value)}}}
	d.UseKey(digest.NewKey([]byte("key")))
	return d
}

// fileOf returns the text of a checkpoint.
func fileOf(t *testing.T, s CheckpointStore) string {
	t.Helper()
	text, err := os.ReadFile(s.Path())
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// redacts reports which of the values a checkpoint and a manifest redact.
func redacts(j *Checkpoint, next *podspec.Desired, values ...string) (redacted []string) {
	for _, value := range values {
		if j.Redactor(next).Text(value) != value {
			redacted = append(redacted, value)
		}
	}
	return redacted
}

// TestSecretsInMemory checks that a checkpoint has no values of Secrets on disk, that this process still knows them,
// also after a change, and that another process knows that it does not.
func TestSecretsInMemory(t *testing.T) {
	layout := Layout{Root: t.TempDir(), LogRoot: t.TempDir()}
	store := layout.Pod(testUID).Checkpoint()
	if err := layout.DigestKey().Make(); err != nil {
		t.Fatal(err)
	}
	key := layout.DigestKey().known()
	first, second := clusterPod("value-one"), clusterPod("value-two")
	for _, d := range []*podspec.Desired{first, second} {
		d.UseKey(key)
	}
	j := &Checkpoint{Memory: model.Memory{Applied: first}}
	if err := store.Write(j); err != nil {
		t.Fatal(err)
	}
	read := func() *Checkpoint {
		t.Helper()
		found, err := store.Read()
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	if j = read(); j.Applied.Redacted || !j.Applied.SameAs(first) || !podspec.KnowsSecrets(j.Applied) {
		t.Errorf("this process: %+v", j.Applied.Objects.Secrets["s"])
	}
	j.KeepEarlierSecrets(second)
	j.Applied = second
	if err := store.Write(j); err != nil {
		t.Fatal(err)
	}
	if got := redacts(read(), nil, "value-one", "value-two"); len(got) != 2 {
		t.Errorf("this process redacts only %q", got)
	}
	if text := fileOf(t, store); strings.Contains(text, "dmFsdWU") || strings.Contains(text, "value-") {
		t.Errorf("on disk: %s", text)
	}

	store.forget() // as another process
	if j = read(); !j.Applied.Redacted || podspec.KnowsSecrets(j.Applied) || !podspec.KnowsSecrets(j.Applied, second) {
		t.Errorf("another process: %+v", j.Applied)
	}
	if !j.Applied.SameAs(second) || j.Applied.SameAs(first) {
		t.Error("the digests do not tell the values apart")
	}
	unread := *second
	unread.Objects, unread.Unread = podspec.Objects{}, map[podspec.ObjectName]podspec.UnreadError{
		{Kind: podspec.KindSecret, Name: "s"}: {},
	}
	if podspec.KnowsSecrets(j.Applied, &unread) {
		t.Error("an unread Secret is known")
	}
	if with, err := j.Applied.WithShared(nil); err != nil || with.Redacted || len(with.Objects.Secrets) > 0 {
		t.Errorf("%+v %v", with, err)
	}
}

// TestSecretsOfAnotherProcess checks that values stay known to this process when another one has written a checkpoint
// without them.
func TestSecretsOfAnotherProcess(t *testing.T) {
	store := Layout{Root: t.TempDir(), LogRoot: t.TempDir()}.Pod(testUID).Checkpoint()
	if err := store.Write(&Checkpoint{Memory: model.Memory{Applied: clusterPod("value-one")}}); err != nil {
		t.Fatal(err)
	}
	known, _ := memory.Load(store.Path())
	other := clusterPod("")
	other.Objects.Secrets = nil
	if err := store.Write(&Checkpoint{Memory: model.Memory{Applied: other}}); err != nil {
		t.Fatal(err)
	}
	memory.Store(store.Path(), known)
	j, err := store.Read()
	if err != nil || len(redacts(j, nil, "value-one")) != 1 || j.Applied.Objects.Secrets != nil {
		t.Errorf("%+v %v", j, err)
	}
	if err = store.Remove(); err != nil {
		t.Fatal(err)
	}
	if _, is := memory.Load(store.Path()); is {
		t.Error("the values of a removed pod stay in memory")
	}
}

// TestHideSecrets checks that the values in an older checkpoint are removed from the disk, and that this process knows
// them. Pods of other sources keep theirs.
func TestHideSecrets(t *testing.T) {
	layout := Layout{Root: t.TempDir(), LogRoot: t.TempDir()}
	for _, owner := range []string{podspec.OwnerAPI, ""} {
		d := clusterPod("value-one")
		if d.MemorySecrets, d.Owner = false, owner; owner == "" {
			d.Pod.UID = "0b5a1bd2-3c3e-4a4f-9d7b-2f6a8c1e0d12"
		}
		j := &Checkpoint{Memory: model.Memory{Applied: d}, EarlierSecrets: [][][]byte{{[]byte("value-old")}}}
		if err := layout.Pod(d.Pod.UID).Checkpoint().Write(j); err != nil {
			t.Fatal(err)
		}
	}
	if err := HideSecrets(t.Context(), &Locker{Layout: layout, Waiting: func(string) {}}); err != nil {
		t.Fatal(err)
	}
	store := layout.Pod(testUID).Checkpoint()
	if text := fileOf(t, store); strings.Contains(text, "dmFsdWU") {
		t.Errorf("on disk: %s", text)
	}
	j, err := store.Read()
	if err != nil || len(redacts(j, nil, "value-one", "value-old")) != 2 {
		t.Errorf("%+v %v", j, err)
	}
	if text := fileOf(t, layout.Pod("0b5a1bd2-3c3e-4a4f-9d7b-2f6a8c1e0d12").Checkpoint()); !strings.Contains(text, "dmFsdWUtb25l") {
		t.Errorf("a pod of another source: %s", text)
	}
}
