package load

import (
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/podspec/document"
	"github.com/podctl/podctl/podspec/input"
)

const wide = `apiVersion: v1
kind: Pod
metadata:
  name: web
spec:
  securityContext:
    runAsUser: 5
  volumes:
  - name: all
    projected:
      sources:
      - configMap:
          name: settings
          items:
          - key: a
            path: b
  containers:
  - name: app
    image: a:1
    env:
    - name: A
      valueFrom:
        fieldRef:
          fieldPath: metadata.name
    ports:
    - containerPort: 80
    livenessProbe:
      httpGet:
        path: /
        port: 80
    lifecycle:
      preStop:
        sleep:
          seconds: 1
`

// TestBothReadersAgree inserts an unknown field before each line in turn. The strict decoder reports its path, for
// which the tree of positions must find that line.
func TestBothReadersAgree(t *testing.T) {
	lines := strings.SplitAfter(strings.TrimSuffix(wide, "\n"), "\n")
	tried := 0
	for i, line := range lines {
		indent := len(line) - len(strings.TrimLeft(line, " -"))
		if i < 3 || strings.HasPrefix(strings.TrimSpace(line), "-") {
			continue
		}
		tried++
		text := strings.Join(lines[:i], "") + strings.Repeat(" ", indent) + "zzz: 1\n" + strings.Join(lines[i:], "")
		docs, _ := document.Split(input.Source{Name: "-", Text: []byte(text)})
		if problems := docs[0].Parse(); len(problems) > 0 {
			t.Fatalf("line %d: %v", i+1, problems)
		}
		found := &report{Document: docs[0]}
		found.decodeInto(&v1.Pod{})
		problems := found.problems()
		if len(problems) != 1 || problems[0].Line != i+1 || problems[0].Column != indent+1 {
			t.Errorf("want a problem in line %d, column %d: %v", i+1, indent+1, problems)
		}
	}
	if tried < 15 {
		t.Errorf("only %d positions were tested", tried)
	}
}
