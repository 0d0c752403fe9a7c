package runtimetest

import (
	"fmt"
	"os"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// leakTimeout is how long goroutines and files may take to end after their tests. Only a test that fails needs it.
const leakTimeout = 5 * time.Minute

// Main runs the tests of a package, and fails if goroutines that they started are left. It is called by TestMain.
func Main(m *testing.M) {
	code := m.Run()
	if left := untilNone(func() []string { return goroutines(nil) }); code == 0 && len(left) > 0 {
		//nolint:forbidigo // there is no other way to report it
		fmt.Fprintf(os.Stderr, "%d goroutines are left:\n\n%s\n", len(left), strings.Join(left, "\n\n"))
		code = 1
	}
	os.Exit(code) //nolint:forbidigo // a main function of tests must exit
}

// CheckLeaks makes a test fail at its end if goroutines or open files that it started are left. Connections of clients
// that outlive the test may have been renewed meanwhile.
func CheckLeaks(tb testing.TB) {
	tb.Helper()
	before, files := map[string]bool{}, len(openFiles(tb))
	for _, g := range goroutines(nil) {
		before[idOf(g)] = true
	}
	tb.Cleanup(func() {
		left := untilNone(func() []string {
			list := goroutines(before)
			// A connection that was lost when the test began may be back, and the library of cgroups keeps one to
			// systemd.
			if open := openFiles(tb); len(open) > files+2 {
				list = append(list, fmt.Sprintf("%d open files, %d before: %v", len(open), files, open))
			}
			return list
		})
		if len(left) > 0 {
			tb.Errorf("left after the test:\n\n%s", strings.Join(left, "\n\n"))
		}
	})
}

// untilNone waits until look returns nothing, or returns the rest after leakTimeout.
func untilNone(look func() []string) []string {
	for began := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		left := look()
		if len(left) == 0 || time.Since(began) > leakTimeout {
			return left
		}
	}
}

// goroutines returns the stacks of goroutines that tests have started, except known ones.
func goroutines(known map[string]bool) []string {
	text := make([]byte, 4<<20)
	text = text[:goruntime.Stack(text, true)]
	var found []string
	for stack := range strings.SplitSeq(string(text), "\n\n") {
		if !known[idOf(stack)] && !belongsToAll(stack, known != nil) {
			found = append(found, stack)
		}
	}
	return found
}

// idOf returns the id of a goroutine.
func idOf(stack string) string {
	id, _, _ := strings.Cut(stack, " [")
	return id
}

// belongsToAll reports whether a goroutine belongs to no single test. These are goroutines of the test framework, of
// libraries for the whole process, and of connections if connections is set.
func belongsToAll(stack string, connections bool) bool {
	for _, of := range []string{
		"runtimetest.goroutines(",
		"testing.(*M).", "testing.tRunner(", "testing.runTests", "testing.(*T).Run(",
		"klog/v2.(*flushDaemon)",
		"os/signal.loop", "os/signal.signal_recv",
		// The library of cgroups keeps its connection to systemd.
		"godbus/dbus/", "go-systemd/",
	} {
		if strings.Contains(stack, of) {
			return true
		}
	}
	return connections &&
		(strings.Contains(stack, "grpc/internal/") || strings.Contains(stack, "google.golang.org/grpc."))
}

// openFiles returns the open files of this process.
func openFiles(tb testing.TB) []string {
	tb.Helper()
	files, err := FilesOf(os.Getpid())
	if err != nil {
		tb.Fatal(err)
	}
	return files
}

// FilesOf returns the open files of a process, except those that a program and its libraries open once.
func FilesOf(pid int) ([]string, error) {
	dir := fmt.Sprintf("/proc/%d/fd", pid)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("looking at open files: %w", err)
	}
	once := []string{dir, "anon_inode:[eventpoll]", "anon_inode:[eventfd]", "/sys/fs/cgroup"}
	var files []string
	for _, entry := range entries {
		target, err := os.Readlink(dir + "/" + entry.Name())
		// The Go runtime keeps the CPU limit of its cgroup open.
		if err == nil && !slices.Contains(once, target) && filepath.Base(target) != "cpu.max" {
			files = append(files, target)
		}
	}
	return files, nil
}
