package sources

import (
	"context"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/podspec/podspectest"
)

// updates is a source with fixed updates.
type updates struct {
	textSource

	all []Update
}

func (u updates) Run(_ context.Context, _ <-chan chan struct{}, notify func(Update)) {
	for _, one := range u.all {
		notify(one)
	}
}

// TestWithUIDs checks that a pod without metadata.uid gets a known uid everywhere in an update, that other pods keep
// theirs, and that an unchanged pod keeps its pointer.
func TestWithUIDs(t *testing.T) {
	pod := func(name, uid string) *podspec.Desired {
		d := podspectest.Desired(t, "apiVersion: v1\nkind: Pod\nmetadata: {namespace: a, name: "+name+"}\n"+
			"spec: {containers: [{name: c, image: i}]}")
		d.WrittenUID, d.Owner = types.UID(uid), "/manifests"
		if uid != "" {
			d.Pod.UID = d.WrittenUID
		}
		return d
	}
	web, db, written, stolen := pod("web", ""), pod("db", ""), pod("written", "w"), pod("stolen", "")
	update := Update{
		Pods: []*podspec.Desired{web, db, written, stolen}, Missing: []types.UID{"z", web.Pod.UID},
		Problems: []Problem{{Pod: web.Pod.UID}, {Pod: "w"}},
	}
	edited := update
	edited.Pods = []*podspec.Desired{web, pod("db", "")}
	uids := UIDs{
		{Namespace: "a", Name: "web"}: "known", {Namespace: "a", Name: "written"}: "other",
		{Namespace: "b", Name: "db"}: "b", {Namespace: "a", Name: "stolen"}: "w",
	}
	var got []Update
	WithUIDs(updates{all: []Update{update, edited}}, func() UIDs { return uids }).
		Run(t.Context(), nil, func(u Update) { got = append(got, u) })
	first := got[0]
	for i, want := range []types.UID{"known", db.Pod.UID, "w", stolen.Pod.UID} {
		if d := first.Pods[i]; d.Pod.UID != want || d.Owner != "/manifests" || d.WrittenUID == "known" {
			t.Errorf("%s: uid %s, want %s; %+v", d.Pod.Name, d.Pod.UID, want, d.Origin)
		}
	}
	if first.Missing[0] != "known" || first.Problems[0].Pod != "known" || first.Problems[1].Pod != "w" {
		t.Errorf("%v, %v", first.Missing, first.Problems)
	}
	if web.Pod.UID == "known" || update.Missing[1] == "known" {
		t.Error("the update of the source has changed")
	}
	if got[1].Pods[0] != first.Pods[0] || got[1].Pods[1] == db {
		t.Error("an unchanged pod has another pointer, or a changed one the same")
	}
}
