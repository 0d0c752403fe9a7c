package agent

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// startPercent and gcPercent are by how much the heap of an agent may grow beyond what is in use before it is
	// collected, while it starts and afterwards. Other commands let it grow more (package early), as they end soon;
	// in an agent what has once grown stays in pieces.
	startPercent, gcPercent = 100, 30
	// calm is how long after the start what it took is given back once more: pods may have come right after it.
	calm = time.Minute
)

// settle returns what ends the start of an agent, in which it looks at all pods at once. From then on memory is
// collected as what stays needs it, and what the start took is given back. GOGC in the environment rules.
func settle() func() {
	collectAt(startPercent)
	end := sync.OnceFunc(func() { collectAt(gcPercent) })
	time.AfterFunc(calm, func() { end(); giveBack() })
	return func() { end(); giveBack() }
}

func collectAt(percent int) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(percent)
	}
}

// giveBack gives the kernel back what is not in use of the heap, and the pages of the binary: most that the start has used
// are not needed again. The kernel keeps them in its cache as long as it has room, and maps each again when it is used.
func giveBack() {
	debug.FreeOSMemory()
	path, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return
	}
	file, err := os.Open("/proc/self/smaps")
	if err != nil {
		return
	}
	defer func() { _ = file.Close() }()
	for _, m := range cleanMappings(file, path) {
		_, _, _ = unix.Syscall(unix.SYS_MADVISE, m.from, m.to-m.from, unix.MADV_DONTNEED)
	}
}

// mapping is a range of addresses.
type mapping struct{ from, to uintptr }

// cleanMappings are the mappings of a file that cannot be written and are as the file has them, in the text of
// /proc/PID/smaps (proc(5)). A linker or a debugger may have changed others in memory, which the file does not know.
func cleanMappings(smaps io.Reader, path string) (clean []mapping) {
	var m mapping
	var isOf bool
	for lines := bufio.NewScanner(smaps); lines.Scan(); {
		line := lines.Text()
		var next mapping
		var perms string
		if n, _ := fmt.Sscanf(line, "%x-%x %4s", &next.from, &next.to, &perms); n == 3 {
			m, isOf = next, strings.HasSuffix(line, " "+path) && !strings.Contains(perms, "w")
		}
		if isOf && strings.HasPrefix(line, "Anonymous:") && strings.HasSuffix(line, " 0 kB") {
			clean = append(clean, m)
		}
	}
	return clean
}
