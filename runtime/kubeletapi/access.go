package kubeletapi

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strconv"

	"github.com/podctl/podctl/runtime/machine"
)

// Address is where the node's server listens.
type Address struct {
	// Host is an IP address or a host name. Empty means all addresses.
	Host string
	// Port is the port; 0 means any free port.
	Port int
	// AlwaysAllow is set if the user chose --authorization-mode AlwaysAllow.
	AlwaysAllow bool
}

// Listen opens the port. Without AlwaysAllow it listens only on 127.0.0.1, whatever the host.
func (a Address) Listen(ctx context.Context, log *slog.Logger) (net.Listener, error) {
	if !a.AlwaysAllow {
		a.Host = "127.0.0.1"
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort(a.Host, strconv.Itoa(a.Port)))
	if err != nil {
		return nil, fmt.Errorf("the server of the node: %w", err)
	}
	if a.AlwaysAllow {
		log.Warn("the server of the node allows every request: "+
			"a client that reaches the port can run commands in all pods",
			"address", l.Addr().String(), "authorization-mode", "AlwaysAllow")
	} else {
		log.Info("the server of the node serves only this user on this machine, "+
			"because no --authorization-mode is set",
			"address", l.Addr().String())
	}
	return l, nil
}

// allow refuses a client. Without AlwaysAllow, the server serves only processes of its own user on this machine: all
// local users reach 127.0.0.1, and a command in a pod may have the rights of root.
func (s *Server) allow(r *http.Request) error {
	if s.AlwaysAllow {
		return nil
	}
	c := connectionOf(r.Context())
	if c == nil || !c.isOwn() {
		return refuse(http.StatusForbidden,
			"Forbidden (without --authorization-mode, only user %d of this machine may use this server)", os.Geteuid())
	}
	return nil
}

// isOwn reports whether a process of the same user on this machine opened the connection. It checks once, because each
// check reads the table of all sockets.
func (c *connection) isOwn() bool {
	c.check.Do(func() {
		peer, errPeer := netip.ParseAddrPort(c.RemoteAddr().String())
		here, errHere := netip.ParseAddrPort(c.LocalAddr().String())
		if errPeer != nil || errHere != nil {
			return
		}
		user, err := machine.PeerUser("/proc", peer, here)
		c.own = err == nil && user == uint64(os.Geteuid()) // it is not negative
	})
	return c.own
}
