package access

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/podctl/podctl/runtime/cluster/apiclient"
	"github.com/podctl/podctl/runtime/cluster/apitest"
)

func TestMain(m *testing.M) { apitest.Main(m) }

// reviewed answers each request with the next answer, and records the requests.
type reviewed struct {
	answers []http.HandlerFunc
	sent    []string
}

func (s *reviewed) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	s.sent = append(s.sent, r.Method+" "+r.URL.Path+" "+string(body))
	next := s.answers[0]
	s.answers = s.answers[1:]
	next(w, r)
}

func reviewsOf(t *testing.T, s *reviewed) Reviews {
	t.Helper()
	_, config := apitest.Serve(t, s)
	client, err := apiclient.New(config)
	if err != nil {
		t.Fatal(err)
	}
	return NewReviews(client)
}

// stub is a user.
var stub = user.DefaultInfo{Name: "ann"}

const tokenReview = `{"kind":"TokenReview","apiVersion":"authentication.k8s.io/v1","status":`

// TestToken checks the request about a token and its answers.
func TestToken(t *testing.T) {
	for name, c := range map[string]struct {
		answers   []http.HandlerFunc
		user, err string
	}{
		"valid": {[]http.HandlerFunc{apitest.JSON(201, tokenReview+
			`{"authenticated":true,"user":{"username":"ann","uid":"u","groups":["g"],"extra":{"k":["v"]}}}}`)}, "ann", ""},
		"invalid": {[]http.HandlerFunc{apitest.JSON(201, tokenReview+`{"user":{"username":"ann"},"error":"expired"}}`)}, "", ""},
		"no name": {[]http.HandlerFunc{apitest.JSON(201, tokenReview+`{"authenticated":true}}`)}, "", "without a name"},
		"a large user": {[]http.HandlerFunc{apitest.JSON(201, tokenReview+
			`{"authenticated":true,"user":{"username":"`+strings.Repeat("x", userMax)+`"}}}`)}, "", "of 65"},
		"another object": {[]http.HandlerFunc{apitest.JSON(201, `{"kind":"Pod","apiVersion":"v1"}`)}, "", "Pod"},
		"refused":        {[]http.HandlerFunc{apitest.Refusal(403, metav1.StatusReasonForbidden, 0)}, "", "refused"},
		"the token":      {[]http.HandlerFunc{apitest.JSON(400, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"BadRequest","code":400,"message":"token-1 is bad"}`)}, "", "contains the token"},
		"busy, then valid": {[]http.HandlerFunc{
			apitest.Refusal(500, metav1.StatusReasonInternalError, 0),
			apitest.JSON(201, tokenReview+`{"authenticated":true,"user":{"username":"ann"}}}`),
		}, "ann", ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &reviewed{answers: c.answers}
				user, err := reviewsOf(t, s).Token(context.Background(), "token-1")
				if (err == nil) != (c.err == "") || err != nil && (!strings.Contains(err.Error(), c.err) || strings.Contains(err.Error(), "token-1")) {
					t.Errorf("%v, want %q", err, c.err)
				}
				if (user == nil) != (c.user == "") || user != nil && user.Name != c.user {
					t.Errorf("%v, want %q", user, c.user)
				}
				if len(s.answers) > 0 || !strings.HasPrefix(s.sent[0], "POST /apis/authentication.k8s.io/v1/tokenreviews ") ||
					!strings.Contains(s.sent[0], `"token":"token-1"`) {
					t.Errorf("%q", s.sent)
				}
			})
		})
	}
}

// TestPermission checks the request about a permission and its answers.
func TestPermission(t *testing.T) {
	for status, want := range map[string]bool{
		`{"allowed":true}`: true, `{"allowed":false}`: false, `{"allowed":true,"denied":true}`: false, `{}`: false,
	} {
		s := &reviewed{answers: []http.HandlerFunc{apitest.JSON(201,
			`{"kind":"SubjectAccessReview","apiVersion":"authorization.k8s.io/v1","status":`+status+`}`)}}
		spec := specsOf(&stub, "node", "GET", "/metrics")[0]
		got, err := reviewsOf(t, s).Access(t.Context(), &spec)
		if err != nil || got != want {
			t.Errorf("%s: %v, %v", status, got, err)
		}
		path, body, _ := strings.Cut(strings.TrimPrefix(s.sent[0], "POST "), " ")
		var sent authorizationv1.SubjectAccessReview
		if err = json.Unmarshal([]byte(body), &sent); err != nil || path != "/apis/authorization.k8s.io/v1/subjectaccessreviews" ||
			sent.Spec.User != "ann" || sent.Spec.ResourceAttributes.Subresource != "metrics" {
			t.Errorf("%s %s: %v", path, body, err)
		}
	}
}

// TestReviewsAfterTheEnd makes requests for a client that is gone: there is an error, not an answer.
func TestReviewsAfterTheEnd(t *testing.T) {
	client, err := apiclient.New(apitest.Respond(http.StatusCreated, "application/json", []byte("{}")))
	if err != nil {
		t.Fatal(err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	r := NewReviews(client)
	if found, err := r.Token(ended, "the-token"); found != nil || err == nil {
		t.Errorf("%v %v", found, err)
	}
	if allowed, err := r.Access(ended, &authorizationv1.SubjectAccessReviewSpec{}); allowed || err == nil {
		t.Errorf("%v %v", allowed, err)
	}
}
