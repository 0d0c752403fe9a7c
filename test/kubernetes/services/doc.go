// Package services runs the API server and etcd of the tests: the services of Kubernetes' own node tests. They only run
// inside a test, so this package is one: `go test -c` builds the program.
package services
