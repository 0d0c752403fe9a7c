package sources

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/podspec/load"
)

// deployment returns a Deployment whose image is its version, and which uses the ConfigMap c.
func deployment(name, version string) string {
	return fmt.Sprintf("apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: %[1]s}\nspec:\n"+
		"  selector: {matchLabels: {app: %[1]s}}\n  template:\n    metadata: {labels: {app: %[1]s}}\n"+
		"    spec:\n      containers:\n"+
		"      - {name: app, image: 'app:%[2]s', envFrom: [{configMapRef: {name: c, optional: true}}]}\n", name, version)
}

const service = "apiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec: {selector: {app: web}, ports: [{port: %d}]}\n"

// newShop returns a book whose texts may have workloads.
func newShop(t *testing.T) *book {
	t.Helper()
	b := newBook(t)
	b.Texts = NewTexts("/pods", load.Loader{Workloads: true, Store: true})
	return b
}

// beside returns the workloads and objects of an update as text.
func beside(u Update) string {
	var all []string
	for _, w := range u.Workloads {
		one := w.Meta().Name + ":" + strings.TrimPrefix(w.Template.Pod.Spec.Containers[0].Image, "app:")
		if c := w.Template.Objects.ConfigMaps["c"]; c != nil {
			one += "+" + c.Data["a"]
		}
		all = append(all, one+"@"+w.Source)
	}
	for _, o := range u.Objects {
		all = append(all, o.Kind()+"@"+o.Source)
	}
	for _, w := range u.Absent {
		all = append(all, "no "+w.Meta().Name)
	}
	return strings.Join(all, " ")
}

func (b *book) hasBeside(t *testing.T, what, want string) Update {
	t.Helper()
	if got := beside(b.last); got != want {
		t.Errorf("%s: %q, want %q", what, got, want)
	}
	return b.last
}

// TestWorkloads checks that workloads and objects are reported with their source. They keep their pointers while no
// text changes. A renamed file only changes the source, and missing objects stay wanted for two seconds.
func TestWorkloads(t *testing.T) {
	b := newShop(t)
	b.write("a", deployment("web", "1")+"---\n"+fmt.Sprintf(service, 80), "c", fmt.Sprintf(config, "x"), "s",
		"apiVersion: v1\nkind: Secret\nmetadata: {name: apart}\n")
	first := b.hasBeside(t, "at first", "web:1+x@a ConfigMap@c Secret@s Service@a")
	for _, k := range []string{first.Workloads[0].Owner, first.Objects[0].Owner, first.Objects[2].Owner} {
		if k != "/pods" {
			t.Errorf("brought by %q", k)
		}
	}
	if again := b.write("p", manifest("one", "", "1")); again.Workloads[0] != first.Workloads[0] ||
		!slices.Equal(again.Objects, first.Objects) {
		t.Error("unchanged objects have new pointers")
	}
	b.write("a", deployment("web", "2")+"---\n"+fmt.Sprintf(service, 81))
	edited := b.hasBeside(t, "an edit", "web:2+x@a ConfigMap@c Secret@s Service@a")
	if edited.Objects[2].Service.Spec.Ports[0].Port != 81 || edited.Objects[1] != first.Objects[1] {
		t.Error("want a notification for the Service and none for the Secret")
	}
	b.texts["b"] = b.texts["a"]
	b.remove("a")
	b.hasBeside(t, "another name", "web:2+x@b ConfigMap@c Secret@s Service@b")
	b.remove("b", "s")
	b.hasBeside(t, "the files are gone", "web:2+x@b ConfigMap@c Secret@s Service@b no web")
	b.later(DropDelay - 1)
	b.hasBeside(t, "shortly before", "web:2+x@b ConfigMap@c Secret@s Service@b no web")
	b.later(1)
	b.hasBeside(t, "after two seconds", "ConfigMap@c")
}

// TestWorkloadsWrongTexts checks that a damaged, empty or unreadable text, and a failed source, change nothing.
func TestWorkloadsWrongTexts(t *testing.T) {
	b := newShop(t)
	whole := deployment("web", "1") + "---\n" + fmt.Sprintf(service, 80)
	b.write("a", whole)
	const want = "web:1@a Service@a"
	for _, text := range []string{
		"",
		"kind: [",
		whole[:len(whole)-60],
		deployment("web", "2") + "---\napiVersion: v1\nkind: Nothing\nmetadata: {name: x}\n",
	} {
		b.write("a", text)
		b.hasBeside(t, "damaged", want)
		b.later(time.Minute)
		b.hasBeside(t, "damaged for a minute", want)
	}
	b.unreadable["a"] = true
	b.read()
	b.later(time.Minute)
	b.hasBeside(t, "unreadable", want)
	b.fails("gone")
	b.later(time.Minute)
	b.hasBeside(t, "the source fails", want)
	b.unreadable["a"] = false
	b.write("a", deployment("web", "3"))
	b.hasBeside(t, "fixed", "web:3@a Service@a")
	b.later(DropDelay)
	b.hasBeside(t, "the Service is in it no more", "web:3@a")
}

// TestDuplicatesInASource checks that the first text wins if two manifests have the same object. The problem names its
// pod, so that it becomes an event of that pod.
func TestDuplicatesInASource(t *testing.T) {
	b := newShop(t)
	b.write("a", deployment("web", "1")+"---\n"+manifest("one", "", "1")+"---\n"+manifest("two", "x", "1")+"---\n"+fmt.Sprintf(service, 80))
	b.write("b",
		deployment("web", "2")+"---\n"+manifest("one", "", "2")+"---\n"+manifest("three", "x", "2")+"---\n"+
			fmt.Sprintf(service, 81))
	b.later(reportDelay)
	b.hasBeside(t, "both", "web:1@a Service@a")
	var of []string
	for _, p := range b.last.Problems {
		of = append(of, string(p.Pod))
	}
	want := []string{string(podspec.UID("default", "one")), "u-x", "", string(podspec.UID("default", "web-0"))}
	if !slices.Equal(of, want) {
		t.Errorf("problems of the pods %q, want %q: %v", of, want, b.last.Problems)
	}
}

// TestWorkloadChangesKind checks that a workload of another kind replaces one with the same pods at once.
func TestWorkloadChangesKind(t *testing.T) {
	b := newShop(t)
	b.write("a", deployment("web", "1"))
	b.write("a", strings.ReplaceAll(deployment("web", "2"), "Deployment", "DaemonSet"))
	if b.hasBeside(t, "another kind", "web:2@a"); b.last.Workloads[0].DaemonSet == nil {
		t.Errorf("%s", b.last.Workloads[0].Kind())
	}
}
