// Package lifecycle has the commands that change pods and wait for them: plan, apply, run, restart, delete and wait. A
// command finds its pods (package selection), calls the engine, and prints the result (package view).
package lifecycle
