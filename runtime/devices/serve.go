package devices

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"

	"google.golang.org/grpc"
	v1 "k8s.io/api/core/v1"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
	"k8s.io/kubernetes/pkg/apis/core/v1/helper"
)

// maxResources limits the resources that plugins have registered at the same time.
const maxResources = 256

// Serve serves the registration of device plugins on a listener, until the context ends.
func (m *Manager) Serve(ctx context.Context, l net.Listener) error {
	m.serving = ctx
	server := grpc.NewServer()
	pluginapi.RegisterRegistrationServer(server, m)
	defer context.AfterFunc(ctx, server.Stop)()
	if err := server.Serve(l); ctx.Err() == nil {
		return err
	}
	return nil
}

// deprecation is a file that a kubelet leaves in the directory. Plugins that use the kubelet's package for plugins do
// not register beside it (v1beta1.Stub.Register).
const deprecation = "DEPRECATION"

// RemoveSockets removes the sockets in the directory of the plugins. Plugins then notice that the agent has restarted,
// and register again (kubelet: CleanupPluginDirectory).
func RemoveSockets(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		if e.Type() != fs.ModeSocket && e.Name() != deprecation {
			continue
		}
		// A plugin that watches the first socket may remove its own meanwhile.
		if gone := os.Remove(filepath.Join(dir, e.Name())); !errors.Is(gone, fs.ErrNotExist) {
			err = errors.Join(err, gone)
		}
	}
	return err
}

// Register registers a device plugin, which serves a socket in the directory of the Manager.
func (m *Manager) Register(ctx context.Context, r *pluginapi.RegisterRequest) (*pluginapi.Empty, error) {
	var p *plugin
	err := m.check(r)
	if err == nil {
		p, err = connect(ctx, filepath.Join(m.settings.Dir, r.GetEndpoint()))
	}
	if err != nil {
		m.settings.Log.Warn("device plugin not registered", "resource", r.GetResourceName(), "error", err.Error())
		return &pluginapi.Empty{}, err
	}
	m.connected(r.GetResourceName(), p)
	go m.watch(r.GetResourceName(), p)
	return &pluginapi.Empty{}, nil
}

// check returns why a registration is not accepted.
func (m *Manager) check(r *pluginapi.RegisterRequest) error {
	switch name := r.GetResourceName(); {
	case !slices.Contains(pluginapi.SupportedVersions[:], r.GetVersion()):
		return fmt.Errorf("requested API version %q is not supported by kubelet. Supported versions are %q",
			r.GetVersion(), pluginapi.SupportedVersions)
	case !helper.IsExtendedResourceName(v1.ResourceName(name)):
		return fmt.Errorf("the ResourceName %q is invalid", name)
	case r.GetEndpoint() == "" || r.GetEndpoint() != filepath.Base(r.GetEndpoint()):
		return fmt.Errorf("the endpoint %q is not the name of a socket in %s", r.GetEndpoint(), m.settings.Dir)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.expire()
	others := 0
	for name, known := range m.resources {
		if name != r.GetResourceName() && !known.expired {
			others++
		}
	}
	if others >= maxResources {
		return fmt.Errorf("%d resources are registered already", others)
	}
	return nil
}

// watch follows the reports of a plugin until its connection ends. The plugin must then register again, as with a
// kubelet.
func (m *Manager) watch(name string, p *plugin) {
	err := p.watch(m.serving, func(listed *pluginapi.ListAndWatchResponse) { m.report(name, p, listed.GetDevices()) })
	_ = p.conn.Close()
	if m.serving.Err() == nil {
		m.disconnected(name, p, err)
	}
}
