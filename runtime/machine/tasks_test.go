package machine

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// TestTasks checks that the lower of the two limits is used.
func TestTasks(t *testing.T) {
	proc := t.TempDir()
	write := func(name, text string) {
		path := filepath.Join(proc, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	if running, limit, err := Tasks(proc); err == nil {
		t.Errorf("nothing can be read: %d of %d", running, limit)
	}
	write("sys/kernel/pid_max", "32768\n")
	write("sys/kernel/threads-max", "15432\n")
	write("loadavg", "1.36 3.49 4.53 2/3518 3715089\n")
	if running, limit, err := Tasks(proc); err != nil || running != 3518 || limit != 15432 {
		t.Errorf("%d of %d %v", running, limit, err)
	}
}
