package kubernetes

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

const (
	// defaultLosses is the number of losses of power without LOSSES.
	defaultLosses = 20
	// busy is how long pods change at most before a loss of power.
	busy = 20 * time.Second
	// fewest and most limit the number of pods.
	fewest, most   = 2, 5
	lossNamespace  = "loss"
	lossPodsPath   = "/api/v1/namespaces/" + lossNamespace + "/pods"
	lossStaticName = "static"
)

// machine is a node that can lose its power.
type machine interface {
	// power starts the machine, and boot also waits until its programs run.
	power(t *testing.T)
	boot(t *testing.T)
	// lose ends everything at once. What was not written to the disk is lost.
	lose(t *testing.T)
	// run runs a script that must succeed.
	run(t *testing.T, script string) string
	// records returns the files of podctl as they were after the boot, before podctl started.
	records(t *testing.T) map[string]string
	// problems returns why its programs did not start at the first try, and what they report as damaged.
	problems(t *testing.T) string
	// until calls asked until it returns an empty string.
	until(t *testing.T, asked func() string)
}

// lossPod has a name, the policy with the network, an image, and arguments.
const lossPod = `{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": %[1]q}, "spec": {
  %[2]s, "nodeName": "node", "terminationGracePeriodSeconds": 3,
  "serviceAccountName": "default", "automountServiceAccountToken": false,
  "volumes": [{"name": "config", "configMap": {"name": "changing"}},
    {"name": "secret", "secret": {"secretName": "changing"}},
    {"name": "token", "projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]}},
    {"name": "data", "emptyDir": {}}],
  "containers": [{"name": "main", "image": %[3]q, "imagePullPolicy": "IfNotPresent", "args": %[4]s,
    "env": [{"name": "WORD", "valueFrom": {"secretKeyRef": {"name": "changing", "key": "word"}}}],
    "volumeMounts": [{"name": "config", "mountPath": "/config"}, {"name": "secret", "mountPath": "/secret"},
      {"name": "token", "mountPath": "/token"}, {"name": "data", "mountPath": "/data"}]}]}}`

// lossKinds are the policies and networks of pods.
var lossKinds = []string{
	`"restartPolicy": "Always"`,
	`"restartPolicy": "Always", "hostNetwork": true`,
	`"restartPolicy": "Always", "hostNetwork": true`,
	`"restartPolicy": "Never", "hostNetwork": true`,
}

// lossStatic is the manifest of a static pod.
const lossStatic = `apiVersion: v1
kind: Pod
metadata: {name: ` + lossStaticName + `}
spec:
  hostNetwork: true
  terminationGracePeriodSeconds: 3
  containers: [{name: main, image: "` + firstImage + `", args: [sleep]}]
`

// losses lets a machine lose its power while its pods change.
type losses struct {
	machine

	api *apiServer
	// recovering is how long a machine runs at most before it loses its power again.
	recovering time.Duration
	// created counts pods, and changes is the value in the ConfigMap and the Secret.
	created, changes int
}

// loseOften creates pods, starts a machine and lets it lose its power at random moments, while pods are created, edited
// and deleted, and while the node recovers from the previous loss. After each boot, the node is as the API server has
// it: all pods run, what was reported stays, and no record is damaged. LOSSES is the number of losses.
func loseOften(t *testing.T, api *apiServer, recovering time.Duration, start func() machine) {
	t.Helper()
	count := defaultLosses
	if text := os.Getenv("LOSSES"); text != "" {
		var err error
		if count, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	l := &losses{api: api, recovering: recovering}
	l.makeObjects(t)
	for range fewest {
		l.create(t)
	}
	l.machine = start()
	l.recover(t, nil)
	for i := range count {
		if !t.Run(strconv.Itoa(i+1), l.once) {
			return
		}
	}
}

// once changes pods until a random moment, ends the machine, and checks it after the next boot. One time in three, it
// ends the machine once more while the node recovers.
func (l *losses) once(t *testing.T) {
	l.churn(t, rand.N(busy))
	before := l.reported(t)
	l.lose(t)
	if rand.IntN(3) == 0 {
		l.power(t)
		time.Sleep(rand.N(l.recovering))
		before = l.reported(t)
		l.lose(t)
	}
	began := time.Now()
	l.boot(t)
	l.checkRecords(t)
	l.recover(t, before)
	t.Logf("all pods run %s after the start", time.Since(began).Round(time.Second))
	if text := l.problems(t); text != "" {
		t.Errorf("problems: %s", text)
	}
	l.checkPods(t)
	l.checkVolumes(t)
}

func (l *losses) makeObjects(t *testing.T) {
	t.Helper()
	l.api.makeNamespace(t, lossNamespace)
	for path, text := range map[string]string{
		"serviceaccounts": `"kind": "ServiceAccount", "metadata": {"name": "default"}`,
		"configmaps":      `"kind": "ConfigMap", "metadata": {"name": "changing"}, "data": {"value": "0"}`,
		"secrets":         `"kind": "Secret", "metadata": {"name": "changing"}, "stringData": {"word": "0"}`,
	} {
		path = "/api/v1/namespaces/" + lossNamespace + "/" + path
		l.api.request(t, http.MethodPost, path, `{"apiVersion": "v1", `+text+`}`)
	}
}

// churn makes changes for some time.
func (l *losses) churn(t *testing.T, d time.Duration) {
	t.Helper()
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(rand.N(2 * time.Second)) {
		pods := l.pods(t)
		if len(pods) <= fewest {
			l.create(t)
			continue
		}
		path := lossPodsPath + "/" + pods[rand.IntN(len(pods))].at("metadata", "name")
		switch kind := rand.IntN(6); {
		case kind == 0 && len(pods) < most:
			l.create(t)
		case kind == 1 || len(pods) > most:
			l.api.request(t, http.MethodDelete, path, "")
		case kind == 2:
			image := []string{firstImage, secondImage}[rand.IntN(2)]
			l.patch(t, path, fmt.Sprintf(`{"spec": {"containers": [{"name": "main", "image": %q}]}}`, image))
		case kind == 3:
			l.patch(t, path, fmt.Sprintf(`{"metadata": {"labels": {"change": "%d"}}}`, rand.Int()))
		default:
			l.changeObjects(t)
		}
	}
}

func (l *losses) changeObjects(t *testing.T) {
	t.Helper()
	l.changes++
	path := "/api/v1/namespaces/" + lossNamespace
	l.patch(t, path+"/configmaps/changing", fmt.Sprintf(`{"data": {"value": "%d"}}`, l.changes))
	l.patch(t, path+"/secrets/changing", fmt.Sprintf(`{"stringData": {"word": "%d"}}`, l.changes))
}

func (l *losses) create(t *testing.T) {
	t.Helper()
	l.created++
	kind, args := lossKinds[rand.IntN(len(lossKinds))], `["sleep"]`
	if strings.Contains(kind, "Never") {
		args = `["exit", "--after", "5s", "0"]`
	}
	name := "pod-" + strconv.Itoa(l.created)
	l.api.request(t, http.MethodPost, lossPodsPath, fmt.Sprintf(lossPod, name, kind, firstImage, args))
}

// patch changes an object that may be gone.
func (l *losses) patch(t *testing.T, path, body string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPatch, serverURL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/strategic-merge-patch+json")
	if _, err = send(request, token); err != nil && !strings.Contains(err.Error(), "404") {
		t.Fatal(err)
	}
}

// pods returns the pods of the API server that are not mirror pods, and are not being deleted.
func (l *losses) pods(t *testing.T) []object {
	t.Helper()
	return slices.DeleteFunc(l.api.pods(t), func(pod object) bool {
		return pod.at("metadata", "namespace") != lossNamespace || pod.at("metadata", "deletionTimestamp") != ""
	})
}

// reported returns all pods of the API server by their uids, with what the node has reported.
func (l *losses) reported(t *testing.T) map[string]object {
	t.Helper()
	known := map[string]object{}
	for _, pod := range l.api.pods(t) {
		known[pod.at("metadata", "uid")] = pod
	}
	return known
}
