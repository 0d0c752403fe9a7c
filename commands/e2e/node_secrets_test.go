package e2e

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podctl/podctl/runtime/cluster/apitest"
)

func containsAny(text string, parts []string) bool {
	for _, part := range parts {
		if strings.Contains(text, part) {
			return true
		}
	}
	return false
}

// encodings returns the forms in which a file may have a text: plain and as base64 at each offset.
func encodings(text string) []string {
	all := []string{text}
	for _, before := range []string{"", "x", "xx"} {
		encoded := base64.StdEncoding.EncodeToString([]byte(before + text))
		all = append(all, encoded[4*len(before)/2:len(encoded)-4])
	}
	return all
}

const secretPods = `apiVersion: v1
kind: Pod
metadata: {name: NAME}
spec:
  terminationGracePeriodSeconds: 1
  serviceAccountName: default
  containers:
  - name: NAME
    image: i:1
`

// plainPod returns a pod without Secrets. Its container has the same name.
func plainPod(t *testing.T, name string) *v1.Pod {
	t.Helper()
	return apiPod(t, strings.ReplaceAll(secretPods, "NAME", name))
}

// podsWithSecrets returns pods that use a Secret in the environment, in a volume, a token, and none.
func podsWithSecrets(t *testing.T) (all []*v1.Pod) {
	t.Helper()
	for name, more := range map[string]string{
		"env": "    env: [{name: A, valueFrom: {secretKeyRef: {name: login, key: password}}}]\n",
		"volume": "    volumeMounts: [{name: v, mountPath: /v}]\n" +
			"  volumes: [{name: v, secret: {secretName: login}}]\n",
		"token": "    volumeMounts: [{name: t, mountPath: /t}]\n  volumes: [{name: t, emptyDir: {}}]\n",
		"plain": "",
	} {
		pod := apiPod(t, strings.ReplaceAll(secretPods, "NAME", name)+more)
		if name == "token" { // A manifest cannot have one.
			pod.Spec.Volumes[0].VolumeSource = v1.VolumeSource{Projected: &v1.ProjectedVolumeSource{
				DefaultMode: new(int32(0o644)), Sources: []v1.VolumeProjection{{
					ServiceAccountToken: &v1.ServiceAccountTokenProjection{Path: "token", ExpirationSeconds: new(int64(3600))},
				}},
			}}
		}
		all = append(all, pod)
	}
	return all
}

// issues answers requests for tokens.
func issues(token string) func(*http.Request) http.HandlerFunc {
	return func(r *http.Request) http.HandlerFunc {
		if !strings.HasSuffix(r.URL.Path, "/token") {
			return nil
		}
		return apitest.JSON(http.StatusCreated, fmt.Sprintf(
			`{"kind":"TokenRequest","apiVersion":"authentication.k8s.io/v1","spec":{"audiences":[],"expirationSeconds":3600},`+"\n"+`"status":{"token":%q,"expirationTimestamp":%q}}`,
			token, time.Now().Add(time.Hour).UTC().Format(time.RFC3339)))
	}
}

func loginSecret(value string) *v1.Secret {
	return &v1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "login"}, Data: map[string][]byte{"password": []byte(value)},
	}
}

const loginPath = "/api/v1/namespaces/default/secrets/login"

// TestSecretsInMemoryOnly checks that with --offline-secrets=false no value of a Secret or token is on disk: not those
// that an earlier agent wrote, not after a change, and not after a kill. After a reboot without the API server, the
// pods that need them wait, and the others run.
func TestSecretsInMemoryOnly(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("volumes in memory need root")
	}
	l := newNodeLab(t)
	defer l.close()
	const first, second, token = "first-password-value", "second-password-value", "issued-token-value"
	l.answerWith(issues(token))
	l.cluster.server.Store(loginPath, loginSecret(first))
	for _, pod := range podsWithSecrets(t) {
		l.cluster.server.Put(pod)
	}
	all := []string{"env", "volume", "token", "plain"}

	l.start()
	l.untilRunning(all...)
	l.stop(syscall.SIGTERM)
	if found := l.onDisk(first, token); len(found) < 4 {
		t.Errorf("with copies on disk, only %q has them", found)
	}

	l.start("--offline-secrets=false")
	l.untilSecret("volume", first)
	l.checkDisk(first, token)
	l.cluster.server.Store(loginPath, loginSecret(second))
	l.untilSecret("volume", second)
	l.untilRunning(all...)
	l.checkDisk(first, second, token)
	for _, text := range []string{l.printed(), l.reported(), l.log.String()} {
		if containsAny(text, append(append(encodings(first), encodings(second)...), encodings(token)...)) {
			t.Errorf("a value is shown: %s", text)
		}
	}
	l.stop(syscall.SIGKILL)
	l.checkDisk(first, second, token)

	l.away.Store(true)
	l.reboot()
	l.start("--offline-secrets=false")
	l.until("the pod without Secrets runs", func() bool { return l.runs("plain") })
	for _, want := range []string{
		"failed to sync secret cache: timed out waiting for the condition (no copy on disk because of --offline-secrets=false)",
		`MountVolume.SetUp failed for volume \"v\" : failed to sync secret cache`,
		`MountVolume.SetUp failed for volume \"t\" : failed to fetch token: `,
	} {
		l.until(want, func() bool {
			_, text := l.run([]string{"events", "-A", "-o", "json"})
			return strings.Contains(text, want)
		})
	}
	for _, name := range all[:3] {
		if l.runs(name) {
			t.Errorf("%s runs without its Secret", name)
		}
	}
	l.checkDisk(first, second, token)

	l.away.Store(false)
	l.until("all pods run", func() bool { return l.runs("env") && l.runs("volume") && l.runs("token") })
	l.checkDisk(first, second, token)
	l.stop(syscall.SIGTERM)

	l.start()
	l.until("copies on disk again", func() bool { return len(l.onDisk(second, token)) > 3 })
	l.stop(syscall.SIGTERM)
}

// runs reports whether the container of a pod runs. Both have the same name.
func (l *nodeLab) runs(name string) bool {
	return strings.Contains(strings.Join(l.records(), "\n"), "container "+name+" of "+name+" CONTAINER_RUNNING")
}

// untilSecret waits until the volume of a pod has a value.
func (l *nodeLab) untilSecret(pod, value string) {
	l.t.Helper()
	uid := string(l.cluster.server.Pod("default", pod).UID)
	l.until("the volume of "+pod+" has the value", func() bool {
		text, err := os.ReadFile(filepath.Join(l.stateDir, "pods", uid, "volumes/kubernetes.io~secret/v/password"))
		return err == nil && string(text) == value
	})
}

func (l *nodeLab) checkDisk(values ...string) {
	l.t.Helper()
	if found := l.onDisk(values...); len(found) > 0 {
		l.t.Errorf("on disk: %q", found)
	}
}
