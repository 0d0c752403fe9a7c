package access

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apiserver/pkg/authentication/user"
)

// verbOf returns the verb of a method (kubelet: GetRequestAttributes). Other methods have none, which a role that
// grants all verbs allows.
func verbOf(method string) string {
	switch method {
	case http.MethodPost:
		return "create"
	case http.MethodGet:
		return "get"
	case http.MethodPut:
		return "update"
	case http.MethodPatch:
		return "patch"
	case http.MethodDelete:
		return "delete"
	}
	return ""
}

// subresourcesOf returns the subresources of the Node that a path needs. One of them is enough (kubelet:
// GetRequestAttributes with KubeletFineGrainedAuthz).
func subresourcesOf(path string) []string {
	first, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	if !strings.HasPrefix(path, "/") {
		first = ""
	}
	switch first {
	case "pods", "runningpods":
		return []string{"pods", "proxy"}
	case "healthz", "configz":
		return []string{first, "proxy"}
	case "stats", "metrics", "checkpoint", "statusz":
		return []string{first}
	case "logs":
		return []string{"log"}
	case "flagz":
		return []string{"configz"}
	}
	return []string{"proxy"}
}

// specsOf returns the questions to the API server about a request.
func specsOf(u user.Info, node, method, path string) []authorizationv1.SubjectAccessReviewSpec {
	extra := make(map[string]authorizationv1.ExtraValue, len(u.GetExtra()))
	for key, values := range u.GetExtra() {
		extra[key] = values
	}
	var specs []authorizationv1.SubjectAccessReviewSpec
	for _, subresource := range subresourcesOf(path) {
		specs = append(specs, authorizationv1.SubjectAccessReviewSpec{
			User: u.GetName(), UID: u.GetUID(), Groups: u.GetGroups(), Extra: extra,
			ResourceAttributes: &authorizationv1.ResourceAttributes{
				Verb: verbOf(method), Version: "v1", Resource: "nodes", Subresource: subresource, Name: node,
			},
		})
	}
	return specs
}

// specKey returns a key for the answer to a question.
func specKey(spec *authorizationv1.SubjectAccessReviewSpec) string {
	text, err := json.Marshal(spec)
	if err != nil {
		panic(err) // It has only strings.
	}
	sum := sha256.Sum256(text)
	return string(sum[:])
}

// errForbidden and errAuthorization have the kubelet's texts.
func errForbidden(specs []authorizationv1.SubjectAccessReviewSpec) *Refusal {
	var names []string
	for i := range specs {
		names = append(names, specs[i].ResourceAttributes.Subresource)
	}
	return &Refusal{http.StatusForbidden, fmt.Sprintf("Forbidden (user=%s, verb=%s, resource=%s, subresource(s)=%v)\n",
		specs[0].User, specs[0].ResourceAttributes.Verb, specs[0].ResourceAttributes.Resource, names)}
}

func errAuthorization(spec *authorizationv1.SubjectAccessReviewSpec) *Refusal {
	r := spec.ResourceAttributes
	text := fmt.Sprintf("Authorization error (user=%s, verb=%s, resource=%s, subresource=%s)",
		spec.User, r.Verb, r.Resource, r.Subresource)
	return &Refusal{http.StatusInternalServerError, text}
}
