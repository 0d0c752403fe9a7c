package lifecycle_test

import (
	"os"
	"strings"
	"testing"

	"github.com/podctl/podctl/commands/exit"
)

const (
	labelled = "apiVersion: v1\nkind: Service\nmetadata: {name: front, labels: {app: shop}}\n" +
		"spec: {clusterIP: None, selector: {app: web}}\n---\n" +
		"apiVersion: v1\nkind: Service\nmetadata: {name: back}\nspec: {clusterIP: None, selector: {app: db}}\n---\n" +
		"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: kept, labels: {app: shop}}\ndata: {a: b}\n---\n" +
		"apiVersion: v1\nkind: Secret\nmetadata: {name: hidden}\nstringData: {a: hunter2-and-more}\n---\n" +
		"apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: disk}\n" +
		"spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}\n---\n"
	withClaim = "  containers: [{name: a, image: 'i:1', volumeMounts: [{name: d, mountPath: /d}]}]\n" +
		"  volumes: [{name: d, persistentVolumeClaim: {claimName: disk}}]\n"
)

// stocked returns a lab with a pod, a Deployment, and an object of every other kind.
func stocked(t *testing.T) *lab {
	t.Helper()
	l := newLab(t)
	cron := "apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: tick}\n" +
		"spec: {schedule: '0 0 1 1 *', jobTemplate: {spec: {template: {spec: {restartPolicy: Never, " +
		"containers: [{name: a, image: 'i:1'}]}}}}}\n"
	l.Must("apply", l.file("objects.yaml", labelled+cron), l.Write("alone", withClaim))
	l.Must("apply", "--wait", written(l, "web", deployment(2, "i:1", "")))
	return l
}

// left lists the names of all stored objects and pods.
func left(l *lab) string {
	stdout, _ := l.Must("get", "pods,deploy,cronjobs,jobs,svc,cm,secrets,pvc", "-o", "name")
	return strings.Join(strings.Fields(stdout), " ")
}

// TestDeleteAll checks that --all deletes everything, and KIND --all only objects of that kind. Claims stay without
// --volumes.
func TestDeleteAll(t *testing.T) {
	const (
		pods    = "pod/alone pod/web-0 pod/web-1 "
		loads   = "deployment/web cronjob/tick "
		objects = "configmap/kept secret/hidden "
		claim   = "persistentvolumeclaim/disk"
	)
	for line, want := range map[string]string{
		"delete --all":                     claim,
		"delete --all -A":                  claim,
		"delete --all --volumes":           "",
		"delete all --all":                 objects + claim,
		"delete all,cm --all":              "secret/hidden " + claim,
		"delete svc --all":                 pods + loads + objects + claim,
		"delete deploy --all":              "pod/alone cronjob/tick service/back service/front " + objects + claim,
		"delete cronjobs.batch --all":      pods + "deployment/web service/back service/front " + objects + claim,
		"delete pods --all":                loads + "service/back service/front " + objects + claim,
		"delete configmaps,secrets --all":  pods + loads + "service/back service/front " + claim,
		"delete pvc --all":                 pods + loads + "service/back service/front " + objects + claim,
		"delete svc,cm -l app=shop":        pods + loads + "service/back secret/hidden " + claim,
		"delete --all -n other":            pods + loads + "service/back service/front " + objects + claim,
		"delete --all --dry-run":           pods + loads + "service/back service/front " + objects + claim,
		"delete --all --volumes --dry-run": pods + loads + "service/back service/front " + objects + claim,
	} {
		t.Run(line, func(t *testing.T) {
			l := stocked(t)
			l.Must(strings.Fields(line)...)
			if got := left(l); got != strings.TrimSpace(want) {
				t.Errorf("left %q, want %q", got, want)
			}
		})
	}
}

// TestDeleteAllDamagedRecords checks that --all also deletes unreadable records.
func TestDeleteAllDamagedRecords(t *testing.T) {
	l := stocked(t)
	for _, name := range []string{"objects/default/configmaps/kept", "workloads/default/cronjobs/tick"} {
		if err := os.WriteFile(l.Path("state/"+name), []byte("{"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	l.Must("delete", "cm,cronjob", "--all")
	if got := left(l); strings.Contains(got, "kept") || strings.Contains(got, "tick") {
		t.Error(got)
	}
}

// TestDeleteOfKindsIsRefused checks that kinds without names need --all or a selector, and that names exclude both.
func TestDeleteOfKindsIsRefused(t *testing.T) {
	l := stocked(t)
	for line, want := range map[string]string{
		"delete svc":                   "delete needs names, --all, or a selector with kinds",
		"delete all":                   "delete needs names, --all, or a selector with kinds",
		"delete pods":                  "delete needs names, --all, or a selector with kinds",
		"delete svc/front --all":       "cannot be used with names",
		"delete deploy web -l app=web": "cannot be used with names",
		"delete svc --field-selector metadata.name=a": "--field-selector is for pods",
		"delete svc -l app=web -f x.yaml":             "kinds cannot be used with manifests",
		"delete svc,widgets --all":                    "--all cannot be used with names",
	} {
		l.wants(exit.Error, []string{want}, strings.Fields(line)...)
	}
	l.wants(exit.OK, []string{"Nothing to delete in namespace other."}, "delete", "--all", "-n", "other")
	if got := left(l); !strings.Contains(got, "service/front") || !strings.Contains(got, "pod/alone") {
		t.Errorf("an object was deleted: %s", got)
	}
}

// TestGrandTotal checks that the output has a total below several plans, and none below a single plan.
func TestGrandTotal(t *testing.T) {
	l := newLab(t)
	alone, objects := l.Write("alone", withClaim), l.file("objects.yaml", labelled)
	web := written(l, "web", deployment(2, "i:1", ""))
	l.wants(exit.OK, []string{"\n\nTotal: pods: 3 to create; workloads: 1 to create; objects: 5 to create.\n"}, "plan",
		alone, objects, web)
	l.wants(exit.OK, []string{"!Total:"}, "plan", alone)
	l.wants(exit.OK, []string{"!Total:"}, "plan", web)
	l.Must("apply", "--wait", alone, web)
	l.wants(exit.OK, []string{"Total: pods: 3 to delete.\n"}, "delete", "--all", "--dry-run")
	changed := written(l, "web", deployment(1, "i:1", ""))
	l.wants(exit.OK, []string{"Total: pods: 1 to delete, 2 unchanged; workloads: 1 to change.\n"}, "plan", alone,
		changed)
	l.wants(exit.OK, []string{
		"note: the next apply or the agent recreates 2 pods of deployment default/web", "!note: pod",
	}, "delete", "web-0", "web-1")
}
