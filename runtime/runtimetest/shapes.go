package runtimetest

import (
	"strings"
	"time"
)

// Shape is a pod, its earlier state, and the behaviour of its containers during a disturbance.
type Shape struct {
	// Before is the manifest that was applied before; empty means none.
	Before string
	// After is the manifest to apply; empty means that the pod is deleted.
	After string
	// Behave sets the behaviour of containers.
	Behave map[string][]Behaviour
}

// Shapes returns pods that together need every kind of step. Each is the pod default/web with the images i:1 and i:2.
// Their commands are those of the demo program.
func Shapes() map[string]Shape {
	two := shapePod("  containers: [{name: a, image: 'i:1'}, {name: b, image: 'i:1'}]\n")
	once := []Behaviour{{After: time.Second}}
	done := map[string][]Behaviour{"first": once, "second": once}
	all := map[string][]Behaviour{"first": once, "second": once, "a": once}
	inits := shapePod("  initContainers: [{name: first, image: 'i:1'}, {name: second, image: 'i:1'}]\n" +
		"  containers: [{name: a, image: 'i:1'}]\n")
	sidecars := shapePod("  initContainers: [{name: s, image: 'i:1', restartPolicy: Always}]\n" +
		"  containers: [{name: a, image: 'i:1'}]\n")
	hooks := shapePod(`  containers:
  - name: a
    image: 'i:1'
    lifecycle: {postStart: {exec: {command: [/demo, exit, '0']}}, preStop: {exec: {command: [/demo, exit, '0']}}}
  - {name: b, image: 'i:1'}
`)
	slower := strings.Replace(hooks, "postStart: {exec: {command: [/demo, exit,",
		"postStart: {exec: {command: [/demo, exit, --after, 1ms,", 1)
	newImage := strings.Replace(two, "{name: b, image: 'i:1'}", "{name: b, image: 'i:2'}", 1)
	limited := strings.Replace(two, "{name: a, image: 'i:1'}",
		"{name: a, image: 'i:1', resources: {limits: {cpu: 1}}}", 1)
	fails := Behaviour{After: time.Second, ExitCode: 1}
	return map[string]Shape{
		"two containers":      {After: two},
		"init containers":     {After: inits, Behave: done},
		"sidecar":             {After: sidecars},
		"hooks":               {After: hooks},
		"volumes":             {After: shapeVolumes()},
		"a pull":              {After: strings.Replace(two, "{name: b, image: 'i:1'}", "{name: b, image: 'new:1'}", 1)},
		"completion":          {After: never(inits), Behave: all},
		"crashes":             {After: two, Behave: map[string][]Behaviour{"a": {fails, fails}}},
		"replace":             {Before: two, After: newImage},
		"replace with a hook": {Before: hooks, After: slower},
		"replace, Never":      {Before: never(two), After: never(newImage)},
		"sandbox change":      {Before: two, After: strings.Replace(two, "spec:\n", "spec:\n  hostname: other\n", 1)},
		"removed container":   {Before: two, After: strings.Replace(two, ", {name: b, image: 'i:1'}", "", 1)},
		"added container":     {Before: two, After: strings.Replace(two, "[{", "[{name: c, image: 'i:1'}, {", 1)},
		"resize":              {Before: limited, After: strings.Replace(limited, "cpu: 1", "cpu: 2", 1)},
		"delete":              {Before: sidecars},
		"delete with hooks":   {Before: hooks},
	}
}

// never returns a pod whose containers run once.
func never(text string) string {
	return strings.Replace(text, "spec:\n", "spec:\n  restartPolicy: Never\n", 1)
}

// shapePod returns the pod with this spec.
func shapePod(spec string) string {
	return "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec:\n  terminationGracePeriodSeconds: 1\n" + spec
}

// shapeVolumes returns a pod with volumes that need no mount.
func shapeVolumes() string {
	return shapePod(`  volumes: [{name: v, emptyDir: {}}, {name: c, configMap: {name: cm}}]
  containers: [{name: a, image: 'i:1', volumeMounts: [{name: v, mountPath: /v}, {name: c, mountPath: /c}]}]
`) + `---
apiVersion: v1
kind: ConfigMap
metadata: {name: cm}
data: {k: v}
`
}
