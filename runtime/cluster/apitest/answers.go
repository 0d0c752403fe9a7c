package apitest

import (
	"encoding/json"
	"io"
	"net/http"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Refusal returns the answer of an API server that refuses a request. after is the delay in seconds that it asks for,
// if it is positive.
func Refusal(code int, reason metav1.StatusReason, after int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		status := metav1.Status{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure,
			Code: int32(code), Reason: reason, Message: "refused", // a code of HTTP
		}
		if after > 0 {
			w.Header().Set("Retry-After", strconv.Itoa(after))
			status.Details = &metav1.StatusDetails{RetryAfterSeconds: int32(after)} // small
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		_ = json.NewEncoder(w).Encode(status)
	}
}

// Page returns the answer of a proxy.
func Page(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(code)
		_, _ = io.WriteString(w, "<html>\n<body>sign in\x1b[31m</body></html>")
	}
}

// JSON returns an answer with a text that should be JSON.
func JSON(code int, text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		_, _ = io.WriteString(w, text)
	}
}

// Disconnect ends the connection without an answer.
func Disconnect(w http.ResponseWriter, _ *http.Request) {
	conn, _, err := w.(http.Hijacker).Hijack() // a test server's writer is one
	if err == nil {
		_ = conn.Close()
	}
}

// Hang answers only when the client gives up.
func Hang(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

// Cut ends the connection in the middle of an answer.
func Cut(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Length", "1000")
	JSON(http.StatusOK, `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"9"},"items":[`)(w, r)
}
