package listwatch

import (
	"context"
	"net/http"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/podctl/podctl/runtime/cluster/apiclient"
	"github.com/podctl/podctl/runtime/cluster/apitest"
)

// FuzzAnswers reads arbitrary answers as a list and as a watch of Secrets. It must end without a panic, with a list that
// has a version or with an error, and with events that have Secrets, bookmarks or errors.
func FuzzAnswers(f *testing.F) {
	const list = `{"kind":"SecretList","apiVersion":"v1","metadata":{"resourceVersion":"5"},"items":[{"metadata":{"name":"a"},"data":{"k":"eA=="}}]}`
	const secret = `{"kind":"Secret","apiVersion":"v1","metadata":{"name":"a","resourceVersion":"6"}}`
	for _, seed := range []string{
		list, `{"type":"ADDED","object":` + secret + "}\n" + `{"type":"DELETED","object":` + secret + "}\n",
		`{"type":"BOOKMARK","object":{"kind":"Secret","apiVersion":"v1","metadata":{"resourceVersion":"7","annotations":{"k8s.io/initial-events-end":"true"}}}}`,
		`{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410}}`,
		`{"type":"MODIFIED","object":{"kind":"Pod","apiVersion":"v1"}}`, `{"type":"X","object":null}`, `{"type":"ADDED"}`, "[]", "\x00\x00\x00\x05k8s\x00\x0a",
	} {
		f.Add([]byte(seed), false)
		f.Add([]byte(seed), true)
	}
	f.Fuzz(func(t *testing.T, text []byte, proto bool) {
		kind := "application/json"
		if proto {
			kind = "application/vnd.kubernetes.protobuf"
		}
		client, err := apiclient.New(apitest.Respond(http.StatusOK, kind, text))
		if err != nil {
			t.Fatal(err)
		}
		s := newSource(Settings{
			Client: client.Core, Resource: "secrets", Object: &v1.Secret{}, List: &v1.SecretList{}, Confirm: apitest.Confirmed,
			Report: func(_ context.Context, _ string, err error) {
				if err != nil && strings.Count(err.Error(), "") > 1<<20 {
					t.Error("an endless error")
				}
			},
		})
		found, err := s.list(t.Context(), metav1.ListOptions{ResourceVersion: "4"})
		if one, is := found.(*v1.SecretList); err == nil && (!is || one.ResourceVersion == "") {
			t.Errorf("a list: %T", found)
		}
		w, err := s.watch(t.Context(), metav1.ListOptions{ResourceVersion: "4", SendInitialEvents: new(true)})
		if err != nil {
			return
		}
		defer w.Stop()
		for e := range w.ResultChan() {
			if e.Type != watch.Error && e.Object == nil {
				t.Errorf("%s without an object", e.Type)
			}
		}
	})
}
