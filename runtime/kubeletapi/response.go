package kubeletapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// refusal is an error with the status code of its response.
type refusal struct {
	code int
	text string
}

// Error returns the body of the response.
func (r *refusal) Error() string { return r.text }

func refuse(code int, format string, args ...any) error {
	return &refusal{code: code, text: fmt.Sprintf(format, args...)}
}

// retryAfter is the time in seconds after which a client may repeat a request that a limit refused (kubelet's
// cri-streaming: cacheTTL).
const retryAfter = 60

// errTooMany refuses a request for one more stream, with the words of the runtime's own limit (kubelet's
// cri-streaming: NewErrorTooManyInFlight).
func errTooMany() error {
	return status.Error(codes.ResourceExhausted, "maximum number of in-flight requests exceeded")
}

// writeError writes an error as a response. Errors of the runtime get the codes of the kubelet (kubelet's
// cri-streaming: WriteError).
func writeError(w http.ResponseWriter, err error) {
	code := http.StatusInternalServerError
	if r := (*refusal)(nil); errors.As(err, &r) {
		code = r.code
	} else if runtimes := status.Code(err); runtimes == codes.NotFound {
		code = http.StatusNotFound
	} else if runtimes == codes.ResourceExhausted {
		code = http.StatusTooManyRequests
	}
	if code == http.StatusTooManyRequests {
		w.Header().Set("Retry-After", strconv.Itoa(retryAfter))
	}
	beginAnswer(w, "text/plain; charset=utf-8")
	w.WriteHeader(code)
	io.WriteString(w, errorText(err)) //nolint:errcheck // the client is gone
}

// answerTime is how long a client may take to read a response that is not a stream.
const answerTime = 5 * time.Minute

// beginAnswer prepares a response that is not a stream.
func beginAnswer(w http.ResponseWriter, contentType string) {
	beginReading(w)
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("X-Content-Type-Options", "nosniff")
}

// beginReading begins the time that a client has to read a response. The runtime may have needed some before.
func beginReading(w http.ResponseWriter) {
	// A connection of a test may have no deadline.
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(answerTime))
}

// writeText writes a text.
func writeText(w http.ResponseWriter, text string) error {
	beginAnswer(w, "text/plain; charset=utf-8")
	io.WriteString(w, text) //nolint:errcheck // the client is gone
	return nil
}

// writeJSON writes a document.
func writeJSON(w http.ResponseWriter, document any) error {
	text, err := json.Marshal(document)
	if err != nil {
		return err
	}
	beginAnswer(w, "application/json")
	w.Write(append(text, '\n')) //nolint:errcheck // the client is gone
	return nil
}

// errorText returns the message of an error without the prefix of gRPC.
func errorText(err error) string {
	if s, ok := err.(interface{ GRPCStatus() *status.Status }); ok {
		return s.GRPCStatus().Message()
	}
	return err.Error()
}

// The limits of a request's body: its size in bytes, and how long a client may take to send it.
const (
	bodyMax  = 1 << 20
	bodyTime = 5 * time.Minute
)

// readForm reads the parameters of a request from its URL and from its body (kubelet's go-restful: QueryParameter).
// Afterwards the request has no body, so that it can be forwarded.
func readForm(w http.ResponseWriter, r *http.Request) error {
	if r.ContentLength != 0 {
		// The deadline is removed afterwards. Otherwise it would end the request.
		control := http.NewResponseController(w)
		_ = control.SetReadDeadline(time.Now().Add(bodyTime)) // A connection of a test may have none.
		defer control.SetReadDeadline(time.Time{})            //nolint:errcheck // as above
	}
	body := http.MaxBytesReader(w, r.Body, bodyMax)
	r.Body = body
	err := r.ParseForm()
	if err == nil {
		_, err = io.Copy(io.Discard, body)
	}
	r.Body, r.ContentLength = http.NoBody, 0
	if large := (*http.MaxBytesError)(nil); errors.As(err, &large) {
		return refuse(http.StatusRequestEntityTooLarge, "the body is larger than %d bytes", large.Limit)
	}
	if err != nil {
		return refuse(http.StatusBadRequest, "%s", err)
	}
	return nil
}
