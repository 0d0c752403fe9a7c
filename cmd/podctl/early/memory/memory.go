// Package memory asks the kernel at once for the pages that the initialisation of podctl's
// libraries is about to write to: their variables, and the first four megabytes of the heap.
// To get them one by one, each when it is first written to, takes a tenth of a plan, the more
// so as a variable that was read before costs a message to the other processors. It imports
// next to nothing, so that Go initialises it before all that writes.
package memory

import (
	"syscall"
	"unsafe"
)

const (
	// populateWrite is MADV_POPULATE_WRITE, which the syscall package does not name. Linux
	// has it since 5.14; an older one refuses it, and nothing is lost.
	populateWrite = 23
	// heapAhead is more than Go maps at once (four megabytes): where the mapping ends the
	// kernel stops.
	heapAhead = 8 << 20
	// variablesAhead is what podctl's variables take, from anchor on. Those that are zero
	// and hold no pointers come last, and are left out: 32 megabytes of the Go runtime's
	// own, most of which it never uses.
	variablesAhead = 896 << 10
	pageSize       = 4 << 10
)

// anchor lies where the variables begin: the linker puts the small ones first, and before
// all others those that have a value and no pointers.
var anchor byte = 1 //nolint:gochecknoglobals // it is its address that counts

func init() { //nolint:gochecknoinits // it has to come before the initialisation of other packages
	populate(unsafe.Pointer(&anchor), variablesAhead)
	// This is more, and done beside the initialisation.
	go populate(unsafe.Pointer(new([64]byte)), heapAhead)
}

// populate gets the pages from somewhere on. What it cannot have comes page by page, as ever.
func populate(from unsafe.Pointer, size uintptr) {
	start := uintptr(from) &^ (pageSize - 1)
	_, _, _ = syscall.Syscall(syscall.SYS_MADVISE, start, size, populateWrite)
}
