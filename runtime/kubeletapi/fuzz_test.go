package kubeletapi

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	v1 "k8s.io/api/core/v1"
	protocol "k8s.io/apimachinery/pkg/util/remotecommand"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/cri-streaming/pkg/streaming/remotecommand"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/kubeletapi/access"
)

// secret is an agent that must not be reached.
type secret struct{ reached bool }

func (s *secret) Shown(context.Context) ([]*podspec.Desired, error) {
	s.reached = true
	return nil, errors.New("reached")
}

func (s *secret) List(context.Context, []*podspec.Desired) ([]*v1.Pod, error) {
	s.reached = true
	return nil, errors.New("reached")
}

func (s *secret) Healthy() error {
	s.reached = true
	return nil
}

// scraper is an API server whose only user may read metrics.
type scraper struct{}

func (scraper) Token(_ context.Context, token string) (*user.DefaultInfo, error) {
	if token != "scraper" {
		return nil, nil
	}
	return &user.DefaultInfo{Name: token}, nil
}

func (scraper) Access(_ context.Context, s *authorizationv1.SubjectAccessReviewSpec) (bool, error) {
	return s.ResourceAttributes.Subresource == "metrics", nil
}

// FuzzRequest sends arbitrary requests. Without credentials each gets 401. A client that may only read metrics reaches
// no pods, health or configuration, whatever the path. No request of a client that may do anything is a panic.
func FuzzRequest(f *testing.F) {
	for _, seed := range []string{
		"GET /pods HTTP/1.1\r\nHost: a\r\n\r\n", "POST /run/ns/web/app?cmd=x HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\ncmd=y",
		"GET /metrics/../pods HTTP/1.1\r\nHost: a\r\n\r\n", "GET /metrics%2f..%2fpods HTTP/1.1\r\nHost: a\r\n\r\n", "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n",
		"GET /exec/ns/web/app?command=a&command=b&input=1&tty=1 HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: websocket\r\n" +
			"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Protocol: v5.channel.k8s.io\r\n\r\n",
		"GET /portForward/ns/web?port=1&port=2 HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n",
		"GET https://metrics//pods HTTP/1.1\r\nHost: a\r\n\r\n", "CONNECT /pods HTTP/1.1\r\nHost: a\r\n\r\n",
		"GET /containerLogs/ns/web/app?tailLines=-1&sinceTime=x HTTP/1.1\r\nHost: a\r\n\r\n", "GET /healthz?exclude=ping&verbose HTTP/1.1\r\nHost: a\r\n\r\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		reads, err := access.New(access.Settings{Node: "node", Reviews: scraper{}, Log: discard})
		if err != nil {
			t.Fatal(err)
		}
		ask := func(decides *access.Access, token string) (int, bool) {
			r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(string(text))))
			if err != nil {
				return 0, false
			}
			r.RemoteAddr = "192.0.2.1:1"
			if r.Header.Del("Authorization"); token != "" {
				r.Header.Set("Authorization", "Bearer "+token)
			}
			r.Header.Del("Sec-WebSocket-Protocol") // It can be a token.
			agent, w := &secret{}, httptest.NewRecorder()
			s := New(agent, nil, Settings{NodeName: "node", Access: decides, Measures: measures{}, Metrics: measures{}, Log: discard})
			mux, lists := s.publicRoutes()
			s.addProtectedRoutes(mux, lists)
			s.handler(nil, mux, s.check).ServeHTTP(w, r)
			return w.Code, agent.reached
		}
		if code, reached := ask(reads, ""); code != 0 && code != http.StatusUnauthorized || reached {
			t.Errorf("without credentials: %d", code)
		}
		if code, reached := ask(reads, "scraper"); reached {
			t.Errorf("a client that may read metrics reaches the agent: %d", code)
		}
	})
}

// FuzzFrames sends arbitrary bytes as the streams of a process. Reading them must end with the connection.
func FuzzFrames(f *testing.F) {
	f.Add([]byte("\x82\x85\x00\x00\x00\x00\x00abcd\x82\x94\x00\x00\x00\x00\x04" + `{"Width":1,"Height":2}`))
	f.Add([]byte("\x88\x80\x00\x00\x00\x00\x89\x80\x00\x00\x00\x00"))
	f.Add([]byte("\x02\xff\xff\xff\xff\xff\xff\xff\xff\xff\x00\x00\x00\x00\x04[1]\x80\xfe\x00\x02"))
	options := &remotecommand.Options{Stdin: true, Stdout: true, TTY: true}
	ended := make(chan struct{}, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() { ended <- struct{}{} }()
		conn := newConn(options)
		_, streams, err := conn.Open(w, r)
		if err != nil {
			return
		}
		defer conn.Close()                                    //nolint:errcheck // the client is gone
		go io.Copy(io.Discard, streams[protocol.StreamStdIn]) //nolint:errcheck // it ends with the connection
		for sizes := readSizes(r.Context(), streams[protocol.StreamResize]); sizes.Next() != nil; {
		}
	}))
	f.Cleanup(server.Close)
	f.Fuzz(func(t *testing.T, frames []byte) {
		client, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", strings.TrimPrefix(server.URL, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close() //nolint:errcheck // the test is over
		const head = "GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: websocket\r\nOrigin: http://a\r\nSec-WebSocket-Version: 13\r\n" +
			"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Protocol: " + protocol.StreamProtocolV5Name + "\r\n\r\n"
		if _, err = io.WriteString(client, head); err != nil {
			t.Fatal(err)
		}
		response, err := http.ReadResponse(bufio.NewReader(client), nil)
		if err != nil || response.StatusCode != http.StatusSwitchingProtocols {
			t.Fatal(response, err)
		}
		client.Write(frames) //nolint:errcheck // the server may have closed the connection
		if err = client.Close(); err != nil {
			t.Fatal(err)
		}
		<-ended
	})
}
