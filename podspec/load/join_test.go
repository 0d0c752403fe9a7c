package load

import (
	"fmt"
	"testing"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/podspec/document"
	"github.com/podctl/podctl/podspec/input"
)

// TestJoin checks that texts that were read once result in the same manifest as when they are read together, in any
// combination. They are neither decoded again nor changed.
func TestJoin(t *testing.T) {
	const pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: %s}\n" +
		"spec: {containers: [{name: a, image: '%s', envFrom: [{configMapRef: {name: c}}]}]}\n"
	l := Loader{Workloads: true}
	var sources []input.Source
	for i, text := range []string{
		fmt.Sprintf(pod, "web", "1"), fmt.Sprintf(pod, "web", "2"), fmt.Sprintf(pod, "bad", ""),
		"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {a: b}\n",
		"apiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec: {ports: [{port: 80}]}\n---\napiVersion: v1\n" +
			"kind: ReplicationController\nmetadata: {name: rc}\n" +
			"spec: {template: {metadata: {labels: {app: a}}, spec: {restartPolicy: Sometimes, containers: [{name: a, " +
			"image: i, envFrom: [{secretRef: {name: s}}]}]}}}\n",
		"apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: d}\n" +
			"spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}, storageClassName: ''}\n",
		"apiVersion: v1\nkind: PersistentVolume\nmetadata: {name: v}\n" +
			"spec: {accessModes: [ReadWriteOnce], capacity: {storage: 1Gi}, hostPath: {path: /d}}\n",
	} {
		sources = append(sources, input.Source{Name: fmt.Sprintf("/%d", i), Text: []byte(text)})
	}
	texts := make([]*Text, 0, len(sources))
	for _, s := range sources {
		texts = append(texts, l.Text(s))
	}
	for set := range 1 << len(sources) {
		var some []input.Source
		var read []*Text
		for i := range sources {
			if set&(1<<i) != 0 {
				some, read = append(some, sources[i]), append(read, texts[i])
			}
		}
		want, _ := l.Parse(some...)
		got, err := l.Join(read...)
		if err != nil || output(got) != output(want) {
			t.Errorf("%b: %v\n%s\nwant\n%s", set, err, output(got), output(want))
		}
		if again, _ := l.Join(read...); len(got.Pods) > 0 && got.Pods[0].Pod != again.Pods[0].Pod {
			t.Errorf("%b: the pod is decoded again", set)
		}
	}
}

// output returns the whole content of a manifest as text.
func output(m *Manifest) string {
	text := fmt.Sprintln(document.GroupNotes(m.Notes()), len(m.Workloads), m.Problems)
	for _, d := range m.Pods {
		text += fmt.Sprintln(d.Pod.Name, d.Pod.Spec.Containers[0].Image, len(d.Objects.ConfigMaps), len(d.Unresolved()))
	}
	for _, o := range m.Objects {
		text += fmt.Sprintln(podspec.ObjectName{Kind: o.Kind(), Name: o.Meta().Name}, o.Volume != nil)
	}
	return text
}
