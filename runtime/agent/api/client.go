package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"

	v1 "k8s.io/api/core/v1"
)

// NotRunningError reports that no agent answers on a socket.
type NotRunningError struct{ Socket string }

// Error returns a message that explains how to start an agent.
func (e *NotRunningError) Error() string {
	return fmt.Sprintf("no agent is running (%s); start one: podctl agent, or systemctl start podctl-agent", e.Socket)
}

// statusError is an answer of an agent that is not a success.
type statusError struct {
	code int
	text string
}

// Error returns the agent's text.
func (e *statusError) Error() string { return "the agent answers: " + e.text }

// maxAnswer limits the size of an agent's answer, in bytes.
const maxAnswer = 64 << 20

// Client sends requests to an agent.
type Client struct{ Socket string }

// Status returns the status of the agent. The error is a *NotRunningError if no agent runs.
func (c Client) Status(ctx context.Context) (*Status, error) {
	var s Status
	return &s, c.call(ctx, http.MethodGet, "/status", &s)
}

// Pods returns the pods of the agent with their status.
func (c Client) Pods(ctx context.Context) (*v1.PodList, error) {
	var list v1.PodList
	return &list, c.call(ctx, http.MethodGet, "/pods", &list)
}

// Reload makes the agent read its configuration and its sources again.
func (c Client) Reload(ctx context.Context) (*Reloaded, error) {
	var done Reloaded
	return &done, c.call(ctx, http.MethodPost, "/reload", &done)
}

// ReadWorkloads makes the agent read the stored workloads again.
func (c Client) ReadWorkloads(ctx context.Context) error {
	return c.call(ctx, http.MethodPost, "/look", &struct{}{})
}

func (c Client) call(ctx context.Context, method, path string, into any) error {
	req, err := http.NewRequestWithContext(ctx, method, "http://agent"+path, http.NoBody)
	if err != nil {
		return err
	}
	reply, err := c.http().Do(req)
	if errors.Is(err, syscall.ENOENT) || errors.Is(err, syscall.ECONNREFUSED) {
		return &NotRunningError{Socket: c.Socket}
	}
	if err != nil {
		return fmt.Errorf("querying the agent: %w", err)
	}
	defer reply.Body.Close() //nolint:errcheck // the body is read to its end or abandoned
	text, err := io.ReadAll(io.LimitReader(reply.Body, maxAnswer))
	if err != nil {
		return fmt.Errorf("querying the agent: %w", err)
	}
	if reply.StatusCode != http.StatusOK {
		return &statusError{reply.StatusCode, strings.TrimSpace(string(text))}
	}
	return json.Unmarshal(text, into)
}

func (c Client) http() *http.Client {
	return &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", c.Socket)
		},
	}}
}
