package services

import (
	"os"
	"testing"

	"k8s.io/kubernetes/test/e2e/framework"
	"k8s.io/kubernetes/test/e2e_node/services"
)

// TestServices runs etcd, the API server and the namespace controller until the process is interrupted. It writes a
// file of tokens to the working directory.
func TestServices(t *testing.T) {
	framework.TestContext.Host = os.Getenv("KUBERNETES_SERVER")
	framework.TestContext.BearerToken = os.Getenv("KUBERNETES_TOKEN")
	if framework.TestContext.Host == "" || framework.TestContext.BearerToken == "" {
		t.Fatal("KUBERNETES_SERVER or KUBERNETES_TOKEN is not set; `make test-kubernetes` runs this")
	}
	services.RunE2EServices(t)
}
