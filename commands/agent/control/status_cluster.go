package control

import (
	"fmt"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/podctl/podctl/commands/terminal"
	"github.com/podctl/podctl/runtime/agent/api"
)

// expiresSoon is the remaining time from which a certificate is a problem.
const expiresSoon = 7 * 24 * time.Hour

// clusterProblems describes the problems of the node in its cluster, one line each.
func clusterProblems(c *api.Cluster, now time.Time) []string {
	var texts []string
	add := func(format string, args ...any) {
		texts = append(texts, oneLine([]string{fmt.Sprintf(format, args...)}))
	}
	if !c.APIServer.Responds && !c.APIServer.Since.IsZero() {
		add("%s", serverText(&c.APIServer, now))
	}
	if c.APIServer.Refusal != "" {
		add("API server: %s: %s", c.APIServer.Address, c.APIServer.Refusal)
	}
	if c.Statuses.Error != "" {
		add("%s: %s", pendingText(c), c.Statuses.Error)
	}
	for i := range c.Node.Conditions {
		one := &c.Node.Conditions[i]
		if healthy := one.Type == v1.NodeReady; (one.Status == v1.ConditionTrue) != healthy {
			add("node %s: %s", c.Node.Name, conditionText(one))
		}
	}
	for i := range c.Certificates {
		one := &c.Certificates[i]
		if one.Error != "" || one.Request != "" || !lasts(one, now) {
			add("%s", certificateText(one, now))
		}
	}
	return texts
}

// lasts reports whether a certificate needs no attention soon.
func lasts(c *api.Certificate, now time.Time) bool {
	left := c.Expires.Sub(now)
	return left > expiresSoon || c.Rotates && left > 0
}

// showCluster prints the cluster's part of a status.
func showCluster(io *terminal.IO, c *api.Cluster) {
	now := io.Now()
	io.Print("API server: %s, pods listed %s", serverText(&c.APIServer, now), ago(c.APIServer.LastList, now))
	state := "not registered"
	if c.Node.UID != "" {
		state = "uid " + string(c.Node.UID)
	}
	if c.Node.Unschedulable {
		state += ", unschedulable"
	}
	io.Print("node %s: %s, lease renewed %s, status sent %s",
		c.Node.Name, state, ago(c.Node.LeaseRenewed, now), ago(c.Node.StatusSent, now))
	for i := range c.Node.Conditions {
		io.Print("  %s", oneLine([]string{conditionText(&c.Node.Conditions[i])}))
	}
	io.Print("server %s", accessText(&c.Server))
	io.Print("status of pods: sent %s, %s", ago(c.Statuses.LastSent, now), pendingText(c))
	for i := range c.Certificates {
		io.Print("%s", oneLine([]string{certificateText(&c.Certificates[i], now)}))
	}
}

func serverText(s *api.Server, now time.Time) string {
	switch {
	case s.Since.IsZero():
		return s.Address + " has not answered yet"
	case s.Responds:
		return fmt.Sprintf("%s responds since %s", s.Address, since(s.Since, now))
	}
	return fmt.Sprintf("%s does not respond since %s: %s", s.Address, since(s.Since, now), s.Error)
}

// accessText describes the node's server and who may use it.
func accessText(s *api.NodeServer) string {
	text := fmt.Sprintf("%s: authorization-mode %s", s.Address, s.Authorization)
	if s.ClientCAFile != "" {
		text += ", client-ca-file " + s.ClientCAFile
	}
	if s.Anonymous {
		text += ", anonymous-auth"
	}
	if s.ReadOnly != "" {
		text += "; read-only " + s.ReadOnly
	}
	return text
}

func pendingText(c *api.Cluster) string {
	return fmt.Sprintf("%d statuses and %d events pending", c.Statuses.Pending, c.Events.Pending)
}

func conditionText(c *v1.NodeCondition) string {
	return fmt.Sprintf("%s %s: %s: %s", c.Type, strings.ToLower(string(c.Status)), c.Reason, c.Message)
}

func certificateText(c *api.Certificate, now time.Time) string {
	name := c.Use + " certificate"
	if c.Subject != "" {
		name += " " + c.Subject
	}
	var parts []string
	switch left := c.Expires.Sub(now); {
	case c.Expires.IsZero() && c.Error == "":
		parts = append(parts, "there is none yet")
	case c.Expires.IsZero():
	case left <= 0:
		parts = append(parts, fmt.Sprintf("expired %s ago", duration.HumanDuration(-left)))
	default:
		parts = append(parts, "expires in "+duration.HumanDuration(left))
	}
	switch {
	case c.Request == "":
	case c.Approved:
		parts = append(parts, fmt.Sprintf("CSR %s is approved and waits for its signer", c.Request))
	default:
		parts = append(parts, fmt.Sprintf("CSR %s has waited %s for approval: kubectl certificate approve %s",
			c.Request, duration.HumanDuration(now.Sub(c.Requested)), c.Request))
	}
	if c.Error != "" {
		parts = append(parts, c.Error)
	}
	return name + ": " + strings.Join(parts, "; ")
}

func since(at, now time.Time) string {
	return fmt.Sprintf("%s (%s)", at.Local().Format(time.DateTime), duration.HumanDuration(now.Sub(at)))
}

// ago describes how long ago something happened.
func ago(at, now time.Time) string {
	if at.IsZero() {
		return "never"
	}
	return duration.HumanDuration(max(now.Sub(at), 0)) + " ago"
}
