package tokens

import (
	"context"
	"net/http"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/cluster/apiclient"
	"github.com/podctl/podctl/runtime/cluster/apierror"
	"github.com/podctl/podctl/runtime/cluster/apitest"
)

// FuzzAnswer reads arbitrary answers to a request for a token. A token has times that can be used, and no error has more
// than one line.
func FuzzAnswer(f *testing.F) {
	for _, seed := range []string{
		`{"kind":"TokenRequest","apiVersion":"authentication.k8s.io/v1","spec":{"expirationSeconds":3600},"status":{"token":"x","expirationTimestamp":"2026-01-01T00:00:00Z"}}`,
		`{"kind":"TokenRequest","apiVersion":"authentication.k8s.io/v1","spec":{"expirationSeconds":-1},"status":{"token":"x","expirationTimestamp":"9999-12-31T23:59:59Z"}}`,
		`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","message":"a\nb","details":{"causes":[{}]},"code":404}`, "{}", "",
	} {
		f.Add([]byte(seed), uint16(http.StatusCreated))
	}
	pod := podWithToken()
	f.Fuzz(func(t *testing.T, text []byte, code uint16) {
		client, err := apiclient.New(apitest.Respond(200+int(code%400), "application/json", text))
		if err != nil {
			t.Fatal(err)
		}
		w := Watcher{
			Client: client.Core, Pod: func(types.UID) *v1.Pod { return pod },
			Confirm: func(context.Context) error { return nil },
		}
		found, err := w.request(t.Context(), keyOf(pod.UID))
		switch {
		case err == nil && (found == nil || len(found.Secret.Data[podspec.TokenKey]) == 0 || due(found, 0).IsZero()):
			t.Errorf("%+v", found)
		case err != nil && strings.ContainsAny(apierror.Text(err), "\n\x1b"):
			t.Errorf("%q", apierror.Text(err))
		}
	})
}
