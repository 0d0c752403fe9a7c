package apitest

import (
	"encoding/json"
	"net/http"
	"testing"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
)

// Main is the TestMain of a package whose tests run client-go in bubbles of synctest.
func Main(m *testing.M) {
	// The handler of errors sleeps until the time of the last error, which may be that of another bubble.
	utilruntime.ErrorHandlers = nil
	m.Run()
}

// WithoutWatchList is the answer of an API server that cannot begin a watch with a list.
func WithoutWatchList(w http.ResponseWriter, r *http.Request) {
	JSON(http.StatusUnprocessableEntity,
		`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Invalid","code":422}`)(w, r)
}

// Stream answers a watch with events until the client gives up, or an event is nil.
func Stream(events <-chan any) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusOK)
		w.(http.Flusher).Flush() // a test server's writer is one
		for {
			select {
			case <-r.Context().Done():
				return
			case e := <-events:
				if e == nil {
					return
				}
				_ = json.NewEncoder(w).Encode(e)
				w.(http.Flusher).Flush() // as above
			}
		}
	}
}
