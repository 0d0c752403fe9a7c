// Package kubeletapi serves the HTTPS API of a node as a kubelet does (pkg/kubelet/server): logs, commands and ports of
// its pods, lists of pods, the configuration and the health.
//
// The inputs are HTTP requests, an agent's pods with their status, and the calls of a runtime. The results are
// responses and streams. The package access decides which requests are accepted. The package serves no streams itself:
// it requests an address from the runtime and forwards the connection to it. The library that forwards streams is the
// kubelet's. The routes use net/http, not go-restful.
//
//	server.go       the settings, the routes, the life of the server
//	access.go       the port, the check of requests, the limits of users
//	certificate.go  the serving certificate: from files, or self-signed and stored
//	connections.go  the limits of connections, and connections without traffic
//	response.go     errors as responses, the limit of bodies
//	pods.go         the pod and the container of a request
//	lists.go        the lists of pods
//	query.go        the options of a request for logs, and the run whose log they select
//	logs.go         logs
//	streams.go      commands, attached processes and forwarded ports
//	websocket.go    the same for clients with WebSocket
//	translate.go    streams of WebSocket as SPDY
//	tunnel.go       SPDY within WebSocket
//	status.go       the configuration and the health
//
// The package changes no pod and makes no decision about one. It does not know the API server.
package kubeletapi
