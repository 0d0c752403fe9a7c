package kubeletapi

import (
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	goruntime "runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

var discard = slog.New(slog.DiscardHandler)

// TestListen checks that only AlwaysAllow makes the server listen on other addresses.
func TestListen(t *testing.T) {
	for host, c := range map[string]struct {
		allow bool
		want  string
	}{"0.0.0.0": {false, "127.0.0.1:"}, "": {false, "127.0.0.1:"}, "127.0.0.2": {true, "127.0.0.2:"}} {
		l, err := Address{Host: host, AlwaysAllow: c.allow}.Listen(t.Context(), discard)
		if err != nil {
			t.Fatal(err)
		}
		if got := l.Addr().String(); !strings.HasPrefix(got, c.want) {
			t.Errorf("%q: it listens on %s", host, got)
		}
		if err = l.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := (Address{Host: "192.0.2.1", AlwaysAllow: true}).Listen(t.Context(), discard); err == nil {
		t.Error("it listens on the address of another machine")
	}
}

// TestOtherUsers checks that without AlwaysAllow another user of this machine is refused, also for health.
func TestOtherUsers(t *testing.T) {
	agent, m, _ := web(t)
	s := serve(t, agent, m, func(s *Settings, _ *limits) { s.AlwaysAllow = false })
	s.expect("GET", "/healthz", http.StatusOK, "ok")
	if os.Geteuid() != 0 {
		t.Skip("only root can open a connection as another user")
	}
	for _, request := range []string{"GET /healthz", "POST /run/ns/web/app", "GET /pods"} {
		plain := dialAs(t, 65534, strings.TrimPrefix(s.url, "https://"))
		conn := tls.Client(plain, &tls.Config{InsecureSkipVerify: true}) // self-signed
		_, err := io.WriteString(conn, request+" HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
		text, readErr := io.ReadAll(conn)
		if err = errors.Join(err, readErr); err != nil || !strings.HasPrefix(string(text), "HTTP/1.1 403 ") ||
			!strings.Contains(string(text), "Forbidden (without --authorization-mode, only user 0 of this machine may use this server)") {
			t.Errorf("%s: %q %v", request, text, err)
		}
	}
}

// dialAs opens a connection as another user. The kernel notes the user of the thread that creates a socket.
func dialAs(t *testing.T, user int, address string) net.Conn {
	t.Helper()
	to := netip.MustParseAddrPort(address)
	goruntime.LockOSThread()
	defer goruntime.UnlockOSThread()
	if err := unix.Setfsuid(user); err != nil {
		t.Fatal(err)
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if restore := unix.Setfsuid(0); restore != nil {
		t.Fatal(restore)
	}
	if err == nil {
		err = unix.Connect(fd, &unix.SockaddrInet4{Port: int(to.Port()), Addr: to.Addr().As4()})
	}
	if err != nil {
		t.Fatal(err)
	}
	file := os.NewFile(uintptr(fd), "socket")
	conn, err := net.FileConn(file)
	if err = errors.Join(err, file.Close()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}
