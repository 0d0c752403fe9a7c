package node

import (
	"cmp"
	"context"
	"log/slog"
	"net"

	"golang.org/x/sync/errgroup"

	"github.com/podctl/podctl/runtime/agent/api"
	"github.com/podctl/podctl/runtime/agent/daemon"
	"github.com/podctl/podctl/runtime/kubeletapi"
	"github.com/podctl/podctl/runtime/kubeletapi/access"
)

// ports are the open ports of the node's server.
type ports struct {
	secure net.Listener
	// readOnly is nil without --read-only-port.
	readOnly net.Listener
	// access decides which requests are accepted; nil accepts every request.
	access   *access.Access
	protocol kubeletapi.Protocol
}

// openPorts opens the ports of the settings. Requests wait until the ports are served.
func openPorts(ctx context.Context, c *daemon.ClusterSettings, reviews access.Reviews, log *slog.Logger) (
	p ports, err error,
) {
	s := &c.Server
	if p.access, err = accessOf(c, reviews, log); err != nil {
		return p, err
	}
	if p.protocol, err = kubeletapi.NewProtocol(s.TLSMinVersion, s.TLSCipherSuites, log); err != nil {
		return p, err
	}
	if p.secure, err = (kubeletapi.Address{Host: s.Address, Port: s.Port}).Listen(ctx); err != nil {
		return p, err
	}
	if s.AlwaysAllow {
		log.Warn("the server of the node allows every request that it accepts",
			"address", p.secure.Addr().String(), "authorization-mode", "AlwaysAllow", "anonymous-auth", s.Anonymous)
	}
	if s.ReadOnlyPort == 0 {
		return p, nil
	}
	readOnly := kubeletapi.Address{Host: cmp.Or(s.Address, "127.0.0.1"), Port: s.ReadOnlyPort}
	if p.readOnly, err = readOnly.Listen(ctx); err != nil {
		_ = p.secure.Close()
	}
	return p, err
}

// accessOf returns the access of the settings; nil if every request is accepted.
func accessOf(c *daemon.ClusterSettings, reviews access.Reviews, log *slog.Logger) (*access.Access, error) {
	s := &c.Server
	if s.AlwaysAllow && s.Anonymous && s.ClientCAFile == "" {
		return nil, nil
	}
	return access.New(access.Settings{
		Node: c.NodeName, ClientCAFile: s.ClientCAFile, Anonymous: s.Anonymous, AlwaysAllow: s.AlwaysAllow,
		TokenTTL: s.TokenTTL, AllowTTL: s.AllowTTL, DenyTTL: s.DenyTTL,
		Reviews: reviews, Log: log,
	})
}

// serve serves the ports until the context ends.
func (p *ports) serve(ctx context.Context, s *kubeletapi.Server) error {
	all, ctx := errgroup.WithContext(ctx)
	all.Go(func() error { return s.Serve(ctx, p.secure) })
	if p.readOnly != nil {
		all.Go(func() error { return s.ServeReadOnly(ctx, p.readOnly) })
	}
	return all.Wait()
}

// describe describes who may use the ports.
func (p *ports) describe(s *daemon.ServerSettings) api.NodeServer {
	d := api.NodeServer{
		Address: p.secure.Addr().String(), Authorization: "Webhook",
		ClientCAFile: s.ClientCAFile, Anonymous: s.Anonymous,
	}
	if s.AlwaysAllow {
		d.Authorization = "AlwaysAllow"
	}
	if p.readOnly != nil {
		d.ReadOnly = p.readOnly.Addr().String()
	}
	return d
}
