// Package agent has the commands for the agent: podctl agent, agent status and agent reload.
package agent
