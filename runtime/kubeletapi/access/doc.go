// Package access decides which requests the node's server accepts, as a kubelet does (pkg/kubelet/server:
// GetRequestAttributes, cmd/kubelet/app: BuildAuth).
//
// The input is a request with its headers and the certificate of its client. The result is the name of the user, or the
// response that refuses the request. Certificates are verified by the files of the settings. The API server decides
// about tokens (TokenReview) and permissions (SubjectAccessReview).
//
//	access.go        the settings, and the decision about a request
//	authenticate.go  the user of a request: certificates, tokens
//	attributes.go    the permissions that a request needs
//	clientca.go      the file with the certificate authorities of clients
//	memory.go        answers of the API server, and the limit of its requests
//	reviews.go       the requests to the API server
//
// Authenticators of requests are apiserver's. Its factories, and its clients of reviews, link several hundred packages
// more. Its cache of tokens has no limit, and does not know the client.
package access
