package podspec

import (
	goruntime "runtime"
	"strings"
	"testing"
)

// desired loads one pod.
func desired(t *testing.T, text string) *Desired {
	t.Helper()
	m := load(t, text)
	if m.Err() != nil {
		t.Fatal(m.Err())
	}
	m.Pods[0].UseKey(testKey)
	return m.Pods[0]
}

// testKey is the key of one machine, otherKey that of another.
var (
	testKey  = NewDigestKey([]byte("0123456789abcdef0123456789abcdef"))
	otherKey = NewDigestKey([]byte("another key, of another machine."))
)

const minimal = `apiVersion: v1
kind: Pod
metadata:
  name: web
spec:
  containers:
  - name: app
    image: registry.local/app:1
`

func load(t *testing.T, text string) *Manifest {
	t.Helper()
	m, err := Load(t.Context(), Reader{Stdin: strings.NewReader(text)}, "-")
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func repeat(n int, line func(int) string) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(line(i))
	}
	return b.String()
}

func problemsOf(m *Manifest) string {
	var lines []string
	for _, p := range m.Problems {
		lines = append(lines, p.String())
	}
	return strings.Join(lines, "\n")
}

// allocated is how many bytes a function allocates.
func allocated(f func()) uint64 {
	var before, after goruntime.MemStats
	goruntime.ReadMemStats(&before)
	f()
	goruntime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}
