package load

import (
	"fmt"
	"strings"
	"testing"
)

// doubling returns an environment in which each variable is twice as long as the one before.
func doubling(n int) string {
	return "    env:\n    - {name: A0, value: s3cretA0}\n" +
		repeat(n, func(i int) string { return fmt.Sprintf("    - {name: A%d, value: $(A%d)$(A%d)}\n", i+1, i, i) })
}

// TestExpandingVariablesAreRefused checks that variables above the limits of Linux are refused when they are read,
// before they are built. The problem names the field, but not the value.
func TestExpandingVariablesAreRefused(t *testing.T) {
	long := strings.Repeat("s3cret", 20_000)
	objects := "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: big}\ndata:\n" +
		repeat(10, func(i int) string { return fmt.Sprintf("  K%d: %s\n", i, long[:100_000]) }) +
		"---\napiVersion: v1\nkind: Secret\nmetadata: {name: long}\nstringData: {K: " + long + long + "}\n"
	for name, c := range map[string]struct{ text, want string }{
		"doubling": {
			doubling(22),
			"-:24:7: spec.containers[0].env[14]: the variable \"A14\" is too long once $(NAME) is expanded",
		},
		"a literal": {
			"    env: [{name: A, value: " + long + long + "}]\n",
			"spec.containers[0].env[0]: the variable \"A\" is too long: with its name " +
				"and a NUL it may have 131072 bytes",
		},
		"many that are as long as can be": {
			"    env:\n    - {name: A, value: " + long + "}\n" +
				repeat(60, func(i int) string { return fmt.Sprintf("    - {name: A%d, value: $(A)}\n", i) }),
			"the variables together have more than the 6291456 bytes",
		},
		"a value of a Secret": {
			"    env: [{name: A, valueFrom: {secretKeyRef: {name: long, key: K}}}]\n",
			"-:9:11: spec.containers[0].env[0]: the variable \"A\" is too long",
		},
		"values of a Secret": {
			"    envFrom: [{secretRef: {name: long}}]\n",
			"-:9:5: spec.containers[0].envFrom: the variable \"K\" is too long",
		},
		"values of a ConfigMap, often": {
			"    envFrom:\n" +
				repeat(1000, func(i int) string {
					return fmt.Sprintf("    - {prefix: p%d, configMapRef: {name: big}}\n", i)
				}),
			"-:9:5: spec.containers[0].envFrom: the variables together have more",
		},
		"a command": {
			doubling(13) + "    command: [a, $(A13)$(A13)]\n",
			"spec.containers[0].command[1]: is too long once $(NAME) is expanded",
		},
		"arguments": {
			doubling(13) + "    args: [" + strings.Repeat("$(A13), ", 100) + "]\n",
			"spec.containers[0].args: has, together with the variables, more than the 6291456 bytes",
		},
		"a probe": {
			"    env: [{name: A, value: " + long + "}]\n    livenessProbe: {exec: {command: [$(A)$(A)]}}\n",
			"spec.containers[0].livenessProbe.exec.command[0]: is too long",
		},
		"a hook": {
			"    env: [{name: A, value: " + long + "}]\n    lifecycle: {preStop: {exec: {command: [$(A)$(A)]}}}\n",
			"spec.containers[0].lifecycle.preStop.exec.command[0]: is too long",
		},
		"a subPathExpr": {
			doubling(10) +
				"    volumeMounts: [{name: v, mountPath: /v, subPathExpr: $(A10)}]\n" +
				"  volumes: [{name: v, emptyDir: {}}]\n",
			"spec.containers[0].volumeMounts[0].subPathExpr: is longer than 4095 bytes",
		},
		"files of one ConfigMap, often": {
			"    volumeMounts: [{name: v, mountPath: /v}]\n  volumes:\n  - name: v\n    projected:\n      sources:\n" +
				repeat(300, func(i int) string { return "      - {configMap: {name: big}}\n" }),
			"-:11:5: spec.volumes[0]: takes, with the containers and volumes before it, more than 268435456 bytes",
		},
	} {
		t.Run(name, func(t *testing.T) {
			var reported string
			made := allocated(func() { reported = problemsOf(parsed(t, minimal+c.text+objects)) })
			if !strings.Contains(reported, c.want) || strings.Contains(reported, "s3cret") {
				t.Errorf("want %q:\n%.2000s", c.want, reported)
			}
			if made > 600<<20 {
				t.Errorf("%d bytes were allocated", made)
			}
		})
	}
}

// TestSmallVariablesAreAccepted checks the limits to the last byte.
func TestSmallVariablesAreAccepted(t *testing.T) {
	value := strings.Repeat("x", 131072-len("A=")-1)
	for text, good := range map[string]bool{
		"    env: [{name: A, value: " + value + "}]\n":  true,
		"    env: [{name: A, value: " + value + "x}]\n": false,
		"    env: [{name: AB, value: " + value + "}]\n": false,
		"    args: [xx" + value + "]\n":                 true,
		"    args: [xxx" + value + "]\n":                false,
		"    env: [{name: A, valueFrom: {fieldRef: {fieldPath: status.podIP}}}]\n    args: [xx" + value + "$(A)]\n": true,
	} {
		if err := parsed(t, minimal+text).Err(); (err == nil) != good {
			t.Errorf("%.60s: %v", text, err)
		}
	}
}
