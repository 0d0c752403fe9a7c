// Package agent has the commands on the agent: podctl agent, agent status and agent reload.
package agent
