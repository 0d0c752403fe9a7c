package access

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/podctl/podctl/runtime/cluster/apiclient"
	"github.com/podctl/podctl/runtime/cluster/apierror"
	"github.com/podctl/podctl/runtime/cluster/apitest"
)

// FuzzReviews reads arbitrary answers as those of a TokenReview and a SubjectAccessReview. Only an answer of the right
// kind accepts, and no error has the token.
func FuzzReviews(f *testing.F) {
	for _, seed := range []string{
		tokenReview + `{"authenticated":true,"user":{"username":"ann","groups":["a"],"extra":{"k":["v"]}}}}`,
		`{"kind":"SubjectAccessReview","apiVersion":"authorization.k8s.io/v1","status":{"allowed":true,"denied":false}}`,
		`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","message":"the-token is bad","code":403}`,
		`{"kind":"TokenReview","apiVersion":"authentication.k8s.io/v1beta1","status":null}`, "{", "[]", "null",
	} {
		f.Add([]byte(seed), uint16(http.StatusCreated))
	}
	f.Fuzz(func(t *testing.T, text []byte, code uint16) {
		client, err := apiclient.New(apitest.Respond(200+int(code%400), "application/json", text))
		if err != nil {
			t.Fatal(err)
		}
		r := NewReviews(client)
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		found, err := r.Token(ctx, "the-token")
		if found != nil && (found.Name == "" || err != nil || !strings.Contains(string(text), "TokenReview")) {
			t.Errorf("%+v %v", found, err)
		}
		if err != nil && strings.Contains(apierror.Text(err), "the-token") {
			t.Errorf("the error has the token: %v", err)
		}
		allowed, err := r.Access(ctx, &authorizationv1.SubjectAccessReviewSpec{})
		if allowed && (err != nil || !strings.Contains(string(text), "SubjectAccessReview")) {
			t.Errorf("%v", err)
		}
	})
}
