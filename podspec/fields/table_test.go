package fields

import (
	"reflect"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/podctl/podctl/podspec/fieldpath"
)

// leaves calls visit for the paths of all fields of a type that have no fields themselves.
func leaves(t reflect.Type, path string, visit func(string)) {
	t = fieldpath.Deref(t)
	switch t {
	case reflect.TypeFor[metav1.Time](), reflect.TypeFor[resource.Quantity](), reflect.TypeFor[intstr.IntOrString](),
		reflect.TypeFor[metav1.FieldsV1](), reflect.TypeFor[time.Time]():
		visit(path)
		return
	}
	kind := t.Kind()
	switch {
	case kind == reflect.Struct:
		for _, f := range fieldpath.Fields(t) {
			leaves(f.Type, fieldpath.Join(path, f.Name), visit)
		}
	case kind == reflect.Slice && t.Elem().Kind() != reflect.Uint8:
		leaves(t.Elem(), path+"[0]", visit)
	case kind == reflect.Map:
		leaves(t.Elem(), path+".key", visit)
		if t == reflect.TypeFor[v1.ResourceList]() {
			visit(path + ".ephemeral-storage")
		}
	default:
		visit(path)
	}
}

func TestEveryFieldIsClassified(t *testing.T) {
	count := 0
	used := map[string]bool{}
	table := NewTable()
	leaves(reflect.TypeFor[v1.Pod](), "", func(path string) {
		count++
		f, ok := table.Classify(path)
		if !ok {
			t.Errorf("%s is not in the table", path)
		}
		used[f.Path] = true
	})
	if count < 700 {
		t.Errorf("only %d fields were found", count)
	}
	for _, f := range All() {
		if !used[f.Path] {
			t.Errorf("the table's row %s matches no field", f.Path)
		}
		if f.Support != Honoured && !strings.HasSuffix(f.Note, ".") {
			t.Errorf("%s: a note must give the reason", f.Path)
		}
	}
}

// TestEveryFieldOfWorkloadsIsClassified checks that no field is ignored silently.
func TestEveryFieldOfWorkloadsIsClassified(t *testing.T) {
	for kind, of := range map[string]reflect.Type{
		"Deployment":  reflect.TypeFor[appsv1.Deployment](),
		"ReplicaSet":  reflect.TypeFor[appsv1.ReplicaSet](),
		"StatefulSet": reflect.TypeFor[appsv1.StatefulSet](),
		"DaemonSet":   reflect.TypeFor[appsv1.DaemonSet](),
		"Job":         reflect.TypeFor[batchv1.Job](),
		"CronJob":     reflect.TypeFor[batchv1.CronJob](),
	} {
		rows, used := Kind(kind), map[string]bool{}
		table := TableOf(rows)
		leaves(of, "", func(path string) {
			f, ok := table.Classify(path)
			if !ok {
				t.Errorf("%s: %s is not in the table", kind, path)
			}
			used[f.Path] = true
		})
		for _, f := range rows {
			if !used[f.Path] {
				t.Errorf("%s: the table's row %s matches no field", kind, f.Path)
			}
			if f.Support != Honoured && !strings.HasSuffix(f.Note, ".") {
				t.Errorf("%s: %s: a note must give the reason", kind, f.Path)
			}
		}
	}
	if Kind("Pod") != nil {
		t.Error("a Pod has a separate table")
	}
}

func TestClassifyTakesTheLongestPath(t *testing.T) {
	cases := map[string]struct {
		support Support
		change  ChangeClass
	}{
		"spec.containers[2].image":                                      {Honoured, Replace},
		"spec.initContainers[0].ports[0].hostPort":                      {Honoured, NewSandbox},
		"spec.initContainers[0].ports[0].name":                          {Honoured, Live},
		"spec.volumes[1].nfs.server":                                    {Refused, NoChange},
		"spec.volumes[1].projected.sources[0].secret.name":              {Honoured, Live},
		"spec.volumes[1].projected.sources[0].serviceAccountToken.x":    {Refused, NoChange},
		"spec.tolerations[0].key":                                       {NoEffect, NoChange},
		"metadata.labels.app":                                           {Honoured, Live},
		"metadata.managedFields[0].manager":                             {NoEffect, NoChange},
		"spec.securityContext.seccompProfile.type":                      {Honoured, Replace},
		"spec.containers[0].resources.limits.cpu":                       {Honoured, InPlace},
		"spec.ephemeralContainers[0].targetContainerName":               {Honoured, NoChange},
		"spec.containers[0].lifecycle.stopSignal":                       {Honoured, Replace},
		"spec.containers[0].lifecycle.preStop.exec.command[0]":          {Honoured, Live},
		"spec.containers[0].securityContext.windowsOptions.hostProcess": {Refused, NoChange},
	}
	table := NewTable()
	for path, want := range cases {
		f, ok := table.Classify(path)
		if !ok || f.Support != want.support || f.Change != want.change {
			t.Errorf("%s: %+v, want %+v", path, f, want)
		}
	}
}
