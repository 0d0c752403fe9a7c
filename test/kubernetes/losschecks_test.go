package kubernetes

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// recover waits until the node is ready, all pods run that should, with containers that were started after the loss,
// and deleted ones are gone. Then it checks that nothing that was reported before the loss is lost.
func (l *losses) recover(t *testing.T, before map[string]object) {
	t.Helper()
	l.until(t, func() string {
		if ready := l.api.nodeReady(t); ready != "True" {
			return fmt.Sprintf("condition Ready of the node is %q", ready)
		}
		return ""
	})
	l.until(t, func() string {
		var missing []string
		all := l.api.pods(t)
		for _, pod := range all {
			if text := pending(pod, before[pod.at("metadata", "uid")]); text != "" {
				missing = append(missing, pod.at("metadata", "name")+": "+text)
			}
		}
		static := func(pod object) bool { return pod.at("metadata", "name") == lossStaticName+"-"+nodeName }
		if !slices.ContainsFunc(all, static) {
			missing = append(missing, "the mirror pod is missing")
		}
		return strings.Join(missing, "\n")
	})
	for uid, now := range l.reported(t) {
		if was := before[uid]; was != nil {
			checkReported(t, was, now)
		}
	}
}

// ended reports whether a pod has a terminal phase.
func ended(pod object) bool {
	return pod.at("status", "phase") == "Succeeded" || pod.at("status", "phase") == "Failed"
}

// pending returns why a pod is not yet as it should be, compared with its status before the loss.
func pending(pod, before object) string {
	id, _ := onlyContainer(pod)["containerID"].(string)
	switch {
	case pod.at("metadata", "deletionTimestamp") != "":
		return "it is not deleted"
	case ended(pod):
		return ""
	case pod.at("status", "phase") != "Running" || pod.condition("Ready") != "True":
		return fmt.Sprint(pod.at("status", "phase"), " ", onlyContainer(pod)["state"])
	case before != nil && id == onlyContainer(before)["containerID"]:
		return "its status has the container of the last boot"
	}
	return ""
}

// checkReported compares the status of a pod with what the node had reported before the loss.
func checkReported(t *testing.T, was, now object) {
	t.Helper()
	name := now.at("metadata", "name")
	before, after := onlyContainer(was), onlyContainer(now)
	switch {
	case ended(was):
		if fmt.Sprint(before) != fmt.Sprint(after) || was.at("status", "phase") != now.at("status", "phase") {
			t.Errorf("pod %s had ended:\n%v\n%v", name, was["status"], now["status"])
		}
	case ended(now):
		if now.at("spec", "restartPolicy") != "Never" {
			t.Errorf("pod %s has ended: %v", name, now["status"])
		}
	case before["containerID"] != nil && number(after, "restartCount") <= number(before, "restartCount"):
		t.Errorf("pod %s: restart count %v, was %v", name, after["restartCount"], before["restartCount"])
	}
	if start := was.at("status", "startTime"); start != "" && start != now.at("status", "startTime") {
		t.Errorf("pod %s: start time %s, was %s", name, now.at("status", "startTime"), start)
	}
	status := func(pod object) object {
		status, _ := pod["status"].(map[string]any)
		return status
	}
	if number(status(now), "observedGeneration") < number(status(was), "observedGeneration") {
		t.Errorf("pod %s: the observed generation went back: %v, was %v", name, now["status"], was["status"])
	}
}

func number(of object, name string) float64 {
	n, _ := of[name].(float64)
	return n
}

// onlyContainer returns the status of the first container of a pod.
func onlyContainer(pod object) object {
	status, _ := pod["status"].(map[string]any)
	list, _ := status["containerStatuses"].([]any)
	for _, one := range list {
		c, _ := one.(map[string]any)
		return c
	}
	return object{}
}

// checkPods checks that podctl has the same pods as the API server.
func (l *losses) checkPods(t *testing.T) {
	t.Helper()
	l.until(t, func() string {
		var want, got []string
		for _, pod := range l.api.pods(t) {
			want = append(want, pod.at("metadata", "uid"))
		}
		for _, pod := range items(t, []byte(l.run(t, "podctl get -A -o json"))) {
			if pod.at("metadata", "name") != lossStaticName {
				got = append(got, pod.at("metadata", "uid"))
			}
		}
		slices.Sort(want)
		slices.Sort(got)
		// The API server also has the mirror pod, with a uid of its own.
		missing := slices.DeleteFunc(slices.Clone(want), func(uid string) bool { return slices.Contains(got, uid) })
		if len(missing) != 1 || len(got) != len(want)-1 {
			return fmt.Sprintf("podctl has the pods %q, the API server %q", got, want)
		}
		return ""
	})
}

// checkVolumes checks that a running pod has the newest objects, a token and its file of hosts.
func (l *losses) checkVolumes(t *testing.T) {
	t.Helper()
	for _, pod := range l.pods(t) {
		if ended(pod) {
			continue
		}
		name := pod.at("metadata", "name")
		script := "podctl exec -n " + lossNamespace + " " + name + " -- /demo read"
		l.until(t, func() string {
			objects := l.run(t, script+" /config/value /secret/word")
			others := l.run(t, script+" /token/token /etc/hosts")
			value := fmt.Sprintf("\n%d", l.changes)
			complete := strings.Contains(others, "localhost") && strings.Contains(others, "\neyJ")
			if strings.Count(objects+"\n", value) != 2 || !complete {
				return fmt.Sprintf("the files in pod %s, want the value %d:\n%s\n%s", name, l.changes, objects, others)
			}
			return ""
		})
	}
}

// checkRecords checks the records as they were after the boot, before podctl started.
func (l *losses) checkRecords(t *testing.T) {
	t.Helper()
	var count int
	for path, text := range l.records(t) {
		if isRecord(path) {
			count++
			checkRecord(t, path, text)
		}
	}
	if count == 0 {
		t.Error("there are no records")
	}
	t.Logf("%d records", count)
}

// isRecord reports whether a file must be complete. Unfinished files and locks need not be.
func isRecord(path string) bool {
	name := filepath.Base(path)
	if strings.Contains(name, "unfinished") || strings.HasSuffix(name, ".tmp") {
		return false
	}
	return strings.HasSuffix(name, ".json") || strings.HasPrefix(path, "cluster/") || strings.HasPrefix(path, "pki/") ||
		name == "kubelet_internal_checkpoint" || name == "digest.key"
}

func checkRecord(t *testing.T, path, text string) {
	t.Helper()
	switch {
	case strings.HasPrefix(path, "pki/"):
		if !strings.HasSuffix(text, "-----\n") {
			t.Errorf("%s is damaged: %d bytes", path, len(text))
		}
	case filepath.Base(path) == "digest.key":
		if len(text) != 32 {
			t.Errorf("%s has %d bytes", path, len(text))
		}
	case !json.Valid([]byte(text)):
		t.Errorf("%s is damaged: %d bytes: %.100q", path, len(text), text)
	}
}
