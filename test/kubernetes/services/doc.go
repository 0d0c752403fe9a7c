// Package services is the API server of the tests, with its etcd: the services of Kubernetes' own node tests.
// They are made to run inside a test, so this package is one: `go test -c` builds the program.
package services
