// Package heap asks the kernel for the first pages of the heap at once. The initialisation
// of podctl's libraries fills some four megabytes; to get them one by one, each when it is
// first written to, takes a tenth of a plan. It imports next to nothing, so that Go
// initialises it before all that fills the heap.
package heap

import (
	"syscall"
	"unsafe"
)

const (
	// populateWrite is MADV_POPULATE_WRITE, which the syscall package does not name. Linux
	// has it since 5.14; an older one refuses it, and nothing is lost.
	populateWrite = 23
	// ahead is more than Go maps at once (four megabytes): where the mapping ends the
	// kernel stops.
	ahead    = 8 << 20
	pageSize = 4 << 10
)

func init() { //nolint:gochecknoinits // it has to come before the initialisation of other packages
	go populate(new([64]byte))
}

// populate runs beside the initialisation, from something on the heap on. What it cannot
// have comes page by page, as ever.
func populate(here *[64]byte) {
	start := uintptr(unsafe.Pointer(here)) &^ (pageSize - 1)
	_, _, _ = syscall.Syscall(syscall.SYS_MADVISE, start, ahead, populateWrite)
}
