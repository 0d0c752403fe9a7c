package kubernetes

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// testAccess uses the objects that a pod refers to, and the API server from inside of pods.
func (c *cluster) testAccess(t *testing.T) {
	c = c.in(t, "access")
	c.must(t, "create", "secret", "docker-registry", "pull", "--docker-server", "private.example.com",
		"--docker-username", pullUser, "--docker-password", pullPassword)
	c.apply(t, "access.yaml")
	for _, pod := range []string{"plain", "reader", "without-token"} {
		c.ready(t, pod)
	}
	c.prove(t, `{"name":"pull"}`, "get", "pod", "reader", "-o", "jsonpath={.spec.imagePullSecrets[*]}")

	// A server answers with 403 if it knows who asks, and with 401 if not.
	for _, question := range []struct{ pod, path, want string }{
		{"plain", "/api", "200"},
		{"plain", "/api/v1/namespaces/access/configmaps/settings", "403"},
		{"reader", "/api/v1/namespaces/access/configmaps/settings", "200"},
		{"reader", "/api/v1/namespaces/access/secrets/password", "403"},
	} {
		if got := c.ask(t, question.pod, question.path); got != question.want {
			t.Errorf("%s: status %s for %s, want %s", question.pod, got, question.path, question.want)
		}
	}
	const directory = "/var/run/secrets/kubernetes.io/serviceaccount"
	c.prints(t, "access", "exec", "plain", "--", "cat", directory+"/namespace")
	c.prints(t, "1000 2000 640\n", "exec", "reader", "--", "stat", "-Lc", "%u %g %a", directory+"/token")
	c.fails(t, 1, "No such file", "exec", "without-token", "--", "ls", directory)

	inside := func(script string) string { return c.must(t, "exec", "reader", "--", "sh", "-c", script) }
	const files = "cat /etc/settings/conf/app.properties /etc/all/password /etc/all/name; stat -Lc ' %a' /etc/all/name"
	if got := inside("echo $SETTING_color $PASSWORD; " + files); got != "red first\nsize=1\nfirstreader 440\n" {
		t.Errorf("%q", got)
	}
	claims := inside("cut -d. -f2 /etc/all/vault-token | tr '_-' '/+' | base64 -d 2>/dev/null || true")
	if !strings.Contains(claims, `"aud":["vault"]`) || !strings.Contains(claims, `"pod":{"name":"reader"`) {
		t.Error(claims)
	}
	c.must(t, "patch", "configmap", "settings", "-p", `{"data": {"color": "blue", "app.properties": "size=2\n"}}`)
	c.must(t, "patch", "secret", "password", "-p", `{"stringData": {"password": "second"}}`)
	c.prove(t, "red first\nsize=2\nsecondreader 440\n", "exec", "reader", "--", "sh", "-c", "echo $SETTING_color $PASSWORD; "+files)

	c.testWaitingReferences(t)
}

// ask requests a path of the API server from inside of a pod, and returns the status of the answer.
func (c *cluster) ask(t *testing.T, pod, path string) string {
	t.Helper()
	return c.must(t, "exec", pod, "--", "sh", "-c", "cd /var/run/secrets/kubernetes.io/serviceaccount;"+
		`curl -sS --max-time 10 -o /dev/null -w '%{http_code}' --cacert ca.crt -H "Authorization: Bearer $(cat token)" `+
		"https://$KUBERNETES_SERVICE_HOST:$KUBERNETES_SERVICE_PORT"+path)
}

// testWaitingReferences creates the objects that a pod waits for.
func (c *cluster) testWaitingReferences(t *testing.T) {
	t.Helper()
	const event = `MountVolume.SetUp failed for volume "late" : secret "late" not found`
	until(t, func() string {
		if events := c.must(t, "events", "--for", "pod/waiting"); !strings.Contains(events, event) {
			return "no event: " + events
		}
		return ""
	})
	c.must(t, "create", "secret", "generic", "late", "--from-literal", "key=value")
	c.prove(t, "CreateContainerConfigError", "get", "pod", "waiting", "-o",
		"jsonpath={.status.containerStatuses[0].state.waiting.reason}")
	c.must(t, "create", "configmap", "late", "--from-literal", "value=here")
	c.ready(t, "waiting")
	c.prints(t, "here value", "exec", "waiting", "--", "sh", "-c", "printf '%s ' $LATE; cat /late/key")
}

// request is a line of the log of the API server.
type request struct {
	Verb, RequestURI, UserAgent string
	User                        struct {
		Username string
		Extra    map[string][]string
	}
	RequestReceivedTimestamp time.Time
	ObjectRef                struct{ Resource, Subresource, Namespace, Name string }
	ResponseStatus           struct {
		Code            int
		Reason, Message string
	}
	Annotations map[string]string
}

// requests returns the logged requests of a user.
func (c *cluster) requests(t *testing.T, user string) []request {
	t.Helper()
	var all []request
	for line := range strings.Lines(read(t, filepath.Join(c.logs, "audit.log"))) {
		var r request
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			continue // the last line may not be complete
		}
		if r.User.Username == user {
			all = append(all, r)
		}
	}
	return all
}

// mayBeRefused reports whether a kubelet has the same refusal: an event of a namespace that is being deleted, and a
// request that succeeds once the API server itself has seen the pod on this node.
func (r *request) mayBeRefused(later []request) bool {
	if r.ObjectRef.Resource == "events" {
		return strings.HasSuffix(r.ResponseStatus.Message, "because it is being terminated")
	}
	early := strings.Contains(r.ResponseStatus.Message, "no relationship found between node") ||
		strings.HasSuffix(r.ResponseStatus.Message, "node requested token bound to a pod scheduled on a different node")
	return early && slices.ContainsFunc(later, func(l request) bool {
		return l.ObjectRef == r.ObjectRef && l.ResponseStatus.Code < http.StatusBadRequest
	})
}

// testRefusals checks that the API server has refused no request of the node, and that the node has no other user.
func (c *cluster) testRefusals(t *testing.T) {
	kinds, all := map[string]int{}, c.requests(t, nodeUser)
	for i, r := range all {
		kinds[fmt.Sprintf("%-7s %s/%s %d", r.Verb, r.ObjectRef.Resource, r.ObjectRef.Subresource, r.ResponseStatus.Code)]++
		switch r.ResponseStatus.Code {
		case http.StatusUnauthorized, http.StatusForbidden, http.StatusUnprocessableEntity, http.StatusBadRequest:
			if !r.mayBeRefused(all[i:]) {
				t.Errorf("refused: %s %s: %d %s", r.Verb, r.RequestURI, r.ResponseStatus.Code, r.ResponseStatus.Message)
			}
		}
	}
	var lines []string
	for kind, count := range kinds {
		lines = append(lines, fmt.Sprintf("%s: %d", kind, count))
	}
	slices.Sort(lines)
	t.Logf("requests of the node:\n%s", strings.Join(lines, "\n"))
	if len(kinds) == 0 {
		t.Error("the node has made no request")
	}
	for _, r := range c.requests(t, "system:anonymous") {
		if strings.HasPrefix(r.UserAgent, "podctl") {
			t.Errorf("without credentials: %s %s", r.Verb, r.RequestURI)
		}
	}
}
