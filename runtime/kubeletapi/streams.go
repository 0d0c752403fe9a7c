package kubeletapi

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/proxy"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/cri-streaming/pkg/streaming/portforward"
	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
	"k8s.io/streaming/pkg/httpstream"

	"github.com/podctl/podctl/podspec"
)

// streamer opens streams to containers and pods. A stream ends with its client, also if the process writes nothing:
// otherwise clients that leave could use up the limit of streams for hours.
type streamer struct {
	finder  *finder
	runtime Runtime
}

// serveExec runs a command in a container (kubelet: getExec).
func (s *streamer) serveExec(w http.ResponseWriter, r *http.Request) error {
	options, pod, err := s.session(w, r)
	if err != nil {
		return err
	}
	id, err := s.container(r, pod)
	if err = cmp.Or(err, needsUpgrade(r)); err != nil {
		return err
	}
	reply, err := s.runtime.Exec(r.Context(), &runtimeapi.ExecRequest{
		ContainerId: id, Cmd: r.URL.Query()["command"],
		Stdin: options.Stdin, Stdout: options.Stdout, Stderr: options.Stderr, Tty: options.TTY,
	})
	if err != nil {
		return err
	}
	return forward(w, r, reply.GetUrl(), options)
}

// serveAttach connects to the process of a container (kubelet: getAttach). Whether it has a terminal is a matter of the
// container, not of the request.
func (s *streamer) serveAttach(w http.ResponseWriter, r *http.Request) error {
	options, pod, err := s.session(w, r)
	if err != nil {
		return err
	}
	id, err := s.finder.runningContainer(r, pod)
	spec, known := podspec.FindContainer(pod.Pod, r.PathValue("container"))
	if err == nil && (id == "" || !known) {
		err = fmt.Errorf("container %s not found in pod %s", r.PathValue("container"), fullName(pod))
	}
	if err = cmp.Or(err, needsUpgrade(r)); err != nil {
		return err
	}
	reply, err := s.runtime.Attach(r.Context(), &runtimeapi.AttachRequest{
		ContainerId: id, Stdin: options.Stdin, Stdout: options.Stdout, Stderr: options.Stderr, Tty: spec.TTY,
	})
	if err != nil {
		return err
	}
	return forward(w, r, reply.GetUrl(), options)
}

// servePortForward forwards connections to ports of a pod (kubelet: getPortForward).
func (s *streamer) servePortForward(w http.ResponseWriter, r *http.Request) error {
	if err := readForm(w, r); err != nil {
		return err
	}
	ports, err := portsOf(r)
	if err != nil {
		return refuse(http.StatusBadRequest, "%s", err)
	}
	want := podNameOf(r)
	pod, err := s.findPod(r)
	if err != nil {
		return err
	}
	if want.uid != "" && want.uid != pod.Pod.UID {
		return refuse(http.StatusNotFound, "pod not found")
	}
	sandbox, err := s.finder.readySandbox(r.Context(), pod.Pod.UID)
	if err == nil && sandbox == "" {
		err = fmt.Errorf("pod not found (%q)", fullName(pod))
	}
	if err = cmp.Or(err, needsUpgrade(r)); err != nil {
		return err
	}
	reply, err := s.runtime.PortForward(r.Context(), &runtimeapi.PortForwardRequest{PodSandboxId: sandbox, Port: ports})
	if err != nil {
		return err
	}
	return forwardPorts(w, r, reply.GetUrl())
}

// serveRun runs a command without streams and returns its output (kubelet: getRun, RunInContainer).
func (s *streamer) serveRun(w http.ResponseWriter, r *http.Request) error {
	if err := readForm(w, r); err != nil {
		return err
	}
	pod, err := s.findPod(r)
	if err != nil {
		return err
	}
	id, err := s.container(r, pod)
	command := strings.Split(r.FormValue("cmd"), " ")
	var reply *runtimeapi.ExecSyncResponse
	if err == nil {
		reply, err = s.runtime.ExecSync(r.Context(), &runtimeapi.ExecSyncRequest{ContainerId: id, Cmd: command})
	}
	if code := reply.GetExitCode(); err == nil && code != 0 {
		err = fmt.Errorf("command '%s' exited with %d: %s", strings.Join(command, " "), code, reply.GetStderr())
	}
	if err != nil {
		return refuse(http.StatusInternalServerError, "%s", errorText(err))
	}
	beginAnswer(w, "application/json")                           // As in a kubelet, although the output has any form.
	w.Write(slices.Concat(reply.GetStdout(), reply.GetStderr())) //nolint:errcheck // the client is gone
	return nil
}

// session returns the streams that a request asks for, and its pod.
func (s *streamer) session(w http.ResponseWriter, r *http.Request) (*remotecommand.Options, *podspec.Desired, error) {
	if err := readForm(w, r); err != nil {
		return nil, nil, err
	}
	options, err := remotecommand.NewOptions(r)
	if err != nil {
		return nil, nil, refuse(http.StatusBadRequest, "%s", err)
	}
	pod, err := s.findPod(r)
	return options, pod, err
}

// findPod returns the pod of a request for a stream.
func (s *streamer) findPod(r *http.Request) (*podspec.Desired, error) {
	pod, err := s.finder.pod(r.Context(), podNameOf(r))
	if err == nil && pod == nil {
		err = refuse(http.StatusNotFound, "pod does not exist")
	}
	return pod, err
}

// container returns the id of the running container of a request.
func (s *streamer) container(r *http.Request, pod *podspec.Desired) (string, error) {
	id, err := s.finder.runningContainer(r, pod)
	if err == nil && id == "" {
		err = fmt.Errorf("container not found (%q)", r.PathValue("container"))
	}
	return id, err
}

// fullName returns the name of a pod in the kubelet's messages (kubelet: GetPodFullName).
func fullName(pod *podspec.Desired) string { return pod.Pod.Name + "_" + pod.Pod.Namespace }

// needsUpgrade refuses a request that cannot carry streams, with the words of the library. It comes before the request
// to the runtime, which keeps an address for each for a minute and limits their number.
func needsUpgrade(r *http.Request) error {
	if httpstream.IsUpgradeRequest(r) {
		return nil
	}
	return refuse(http.StatusInternalServerError, "Upgrade request required")
}

// forwarding returns a handler that forwards an upgraded connection to the runtime's address (kubelet: proxyStream).
// The runtime must not get the client's credentials.
func forwarding(r *http.Request, address string) (http.Handler, *url.URL, error) {
	to, err := url.Parse(address)
	if err != nil || to.Host == "" || (to.Scheme != "http" && to.Scheme != "https") {
		return nil, nil, refuse(http.StatusInternalServerError,
			"the runtime returned an invalid address for the stream")
	}
	r.Header.Del("Authorization")
	r.Header.Del("Cookie")
	dropTokens(r.Header)
	return proxy.NewUpgradeAwareHandler(to, nil, false, true, responder{}), to, nil
}

// tokenProtocol is the prefix of a WebSocket protocol that is a token.
const tokenProtocol = "base64url.bearer.authorization.k8s.io."

// dropTokens removes tokens from the protocols that a WebSocket client offers. The access control removes only a token
// by which it has accepted a client.
func dropTokens(h http.Header) {
	const header = "Sec-Websocket-Protocol"
	var kept []string
	for p := range strings.SplitSeq(strings.Join(h.Values(header), ","), ",") {
		if p = strings.TrimSpace(p); p != "" && !strings.HasPrefix(p, tokenProtocol) {
			kept = append(kept, p)
		}
	}
	h.Del(header)
	if len(kept) > 0 {
		h.Set(header, strings.Join(kept, ", "))
	}
}

// responder writes an error of the connection to the runtime (kubelet: responder).
type responder struct{}

// Error writes the response.
func (responder) Error(w http.ResponseWriter, _ *http.Request, err error) {
	writeError(w, refuse(http.StatusInternalServerError, "%s", err))
}

// portsOf returns the ports of a request with WebSocket. With SPDY, each stream names its own.
func portsOf(r *http.Request) ([]int32, error) {
	if isTunnel(r) {
		return nil, nil
	}
	options, err := portforward.NewV4Options(r)
	if err != nil {
		return nil, err
	}
	return options.Ports, nil
}
