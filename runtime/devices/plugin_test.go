package devices

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/test/bufconn"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"github.com/podctl/podctl/runtime/devices/devicestest"
)

// TestRegistrationBeforeServing: a plugin may register before it serves its socket. After 10 seconds without a
// connection, the registration fails, as with a kubelet.
func TestRegistrationBeforeServing(t *testing.T) {
	for refused, want := range map[time.Duration]string{
		3 * time.Second: "", time.Hour: "no connection to the device plugin's socket a.sock",
	} {
		synctest.Test(t, func(t *testing.T) {
			l, server := bufconn.Listen(1024), grpc.NewServer()
			defer server.Stop()
			pluginapi.RegisterDevicePluginServer(server, &devicestest.Plugin{})
			go func() { _ = server.Serve(l) }()
			began := time.Now()
			dial := func(ctx context.Context, _ string) (net.Conn, error) {
				if time.Since(began) < refused {
					return nil, errors.New("connection refused")
				}
				return l.DialContext(ctx)
			}
			p, err := connect(t.Context(), "a.sock", grpc.WithContextDialer(dial))
			if p != nil {
				defer func() { _ = p.conn.Close() }()
			}
			failed := err != nil && strings.Contains(err.Error(), want)
			if failed != (want != "") || time.Since(began) > connectTimeout {
				t.Errorf("%v after %s", err, time.Since(began))
			}
		})
	}
}
