// Package runtime combines podctl's packages for one container runtime and one state directory. An Engine has one value
// of each, and only delegates:
//
//	Pods       one pass: lock, observe, plan, execute          syncpod
//	Waiter     passes until a goal                             wait
//	Prober     one round of probes                             probe
//	Observer   the observed state of one pod                   observe
//	Lister     the status of many pods                         observe
//	Sessions   logs, exec, attach, ports, files, usage         session
//	Images     list, pull, load, save, pin, remove             images
//	Garbage    leftovers                                       gc
//
// Below them, plan decides, criconfig builds messages, executor executes, cri calls the runtime, state has all paths on
// disk, and snapshot has observed states as values. Imports have one direction, which a test checks (docs/design.md has
// the map).
package runtime
