package e2e

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podctl/podctl/runtime/runtimetest"
)

func TestMemoryKeepsTheContract(t *testing.T) {
	dir, err := os.MkdirTemp("", "podctl-memory-") //nolint:usetesting // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	clock := runtimetest.NewClock(time.Unix(1_780_000_000, 0))
	server, err := runtimetest.NewServer(t.Context(), filepath.Join(dir, "cri.sock"), clock, "registry.local/demo:1")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	for _, name := range []string{"once", "over", "events", "output"} {
		server.Behave(name, runtimetest.Behaviour{After: time.Second})
	}
	conn, err := grpc.NewClient("unix://"+filepath.Join(dir, "cri.sock"),
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	contract(t, subject{
		Runtime: runtimeapi.NewRuntimeServiceClient(conn), Images: runtimeapi.NewImageServiceClient(conn),
		Image: "registry.local/demo:1", LogDir: filepath.Join(dir, "logs"),
		Tick: func() { clock.Advance(time.Second) }, StopsAtOnce: true, Silent: true,
	})
}
