package kubeletapi

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	kubeletconfig "k8s.io/kubelet/config/v1beta1"
)

// check is a part of the health of the node.
type check struct {
	name string
	run  func() error
}

// checksOf returns the kubelet's checks: the server answers, messages can be logged, and the agent's loop is not
// stalled.
func checksOf(agent Agent) []check {
	ok := func() error { return nil }
	return []check{{"ping", ok}, {"log", ok}, {"syncloop", agent.Healthy}}
}

// serveHealth serves the result of one check, which also has the error (kubelet's apiserver: adaptCheckToHandler).
func serveHealth(c check) handler {
	return func(w http.ResponseWriter, _ *http.Request) error {
		if err := c.run(); err != nil {
			return refuse(http.StatusInternalServerError, "internal server error: %s\n", err)
		}
		return writeText(w, "ok")
	}
}

// serveAllHealth serves the result of all checks: ok, or after a failure and with the parameter verbose one line for
// each. The parameter exclude omits a check (kubelet's apiserver: handleRootHealth).
func serveAllHealth(checks []check) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		lines, failed := runChecks(checks, r.URL.Query()["exclude"])
		if failed {
			return refuse(http.StatusInternalServerError, "%shealthz check failed\n", lines)
		}
		if r.URL.Query()["verbose"] == nil {
			return writeText(w, "ok")
		}
		return writeText(w, lines+"healthz check passed\n")
	}
}

// runChecks runs the checks and describes each result in a line.
func runChecks(checks []check, excluded []string) (lines string, failed bool) {
	var out bytes.Buffer
	for _, c := range checks {
		switch {
		case slices.Contains(excluded, c.name):
			fmt.Fprintf(&out, "[+]%s excluded: ok\n", c.name)
		case c.run() != nil:
			failed = true
			fmt.Fprintf(&out, "[-]%s failed: reason withheld\n", c.name)
		default:
			fmt.Fprintf(&out, "[+]%s ok\n", c.name)
		}
	}
	var unknown []string
	for _, name := range slices.Compact(slices.Sorted(slices.Values(excluded))) {
		if !slices.ContainsFunc(checks, func(c check) bool { return c.name == name }) {
			unknown = append(unknown, strconv.Quote(name))
		}
	}
	if len(unknown) > 0 {
		fmt.Fprintf(&out, "warn: some health checks cannot be excluded: no matches for %s\n",
			strings.Join(unknown, ","))
	}
	return out.String(), failed
}

// serveConfig serves the configuration of the node (kubelet: configz).
func serveConfig(read func(context.Context) *kubeletconfig.KubeletConfiguration) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		values := read(r.Context())
		if values == nil {
			return refuse(http.StatusNotFound, "the configuration of the node is not known")
		}
		document := *values
		document.APIVersion, document.Kind = kubeletconfig.SchemeGroupVersion.String(), "KubeletConfiguration"
		return writeJSON(w, map[string]any{"kubeletconfig": &document})
	}
}
