// Package runtime puts podctl's rooms together for one container runtime and one state
// directory. An Engine has one of each, and does nothing itself:
//
//	Pods       one pass: lock, observe, plan, execute          syncpod
//	Waiter     passes until a goal                             wait
//	Prober     one round of probes                             probe
//	Observer   what is there of one pod                        observe
//	Lister     the status of many pods                         observe
//	Sessions   logs, exec, attach, ports, files, usage         session
//	Images     list, pull, load, save, pin, remove             images
//	Garbage    what is left behind                             gc
//
// Below them: plan decides, criconfig builds messages, executor carries out, cri talks to the
// runtime, state knows every path on disk, snapshot has what was observed as a value. Imports
// go one way; the linter holds it (docs/design.md has the map).
package runtime
