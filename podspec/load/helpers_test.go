package load

import (
	goruntime "runtime"
	"strings"
	"testing"

	"github.com/podctl/podctl/podspec/input"
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

// claimSpec is the minimal spec of a claim.
const claimSpec = "spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}\n"

// parsed returns the parsed manifest.
func parsed(t *testing.T, text string) *Manifest {
	t.Helper()
	return Parse(input.Source{Name: "-", Text: []byte(text)})
}

// accepted returns the parsed manifest, which must be valid.
func accepted(t *testing.T, text string) *Manifest {
	t.Helper()
	m := parsed(t, text)
	if m.Err() != nil {
		t.Fatal(m.Err())
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

// allocated returns the bytes that a function allocates.
func allocated(f func()) uint64 {
	var before, after goruntime.MemStats
	goruntime.ReadMemStats(&before)
	f()
	goruntime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}
