package apitest

import (
	"bytes"
	"io"
	"net/http"

	"k8s.io/client-go/rest"
)

// Respond returns the configuration of a client that gets the same answer to each request, without a connection.
func Respond(code int, contentType string, body []byte) *rest.Config {
	return &rest.Config{Host: "http://api.test", QPS: -1, Transport: answer(func(r *http.Request) *http.Response {
		return &http.Response{
			StatusCode: code, Status: http.StatusText(code),
			Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
			Header: http.Header{"Content-Type": {contentType}}, Body: io.NopCloser(bytes.NewReader(body)),
			ContentLength: int64(len(body)),
		}
	})}
}

// answer is a transport.
type answer func(*http.Request) *http.Response

// RoundTrip returns the answer.
func (a answer) RoundTrip(r *http.Request) (*http.Response, error) { return a(r), nil }
