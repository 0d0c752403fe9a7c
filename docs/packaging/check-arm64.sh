#!/bin/sh
# Compares podctl for arm64 in an emulator with podctl of this machine: PODCTL=PROGRAM EMULATED="EMULATOR PROGRAM"
# check-arm64.sh. `make test-arm64` runs it.
set -eu

examples=$(dirname "$0")/../examples
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

cat >"$dir/hello.json" <<'JSON'
{"apiVersion": "podctl.io/v1alpha1", "kind": "Snapshot", "takenAt": "2026-05-04T12:00:00Z",
 "runtime": {"name": "containerd", "version": "2.4.2"},
 "sandboxes": [{"id": "s", "metadata": {"name": "hello", "namespace": "default"}, "state": "SANDBOX_READY", "createdAt": "1", "network": {"ip": "10.0.0.1"}}],
 "containers": [{"podSandboxId": "s", "status": {"id": "c", "metadata": {"name": "fetch"}, "state": "CONTAINER_EXITED", "exitCode": 1,
  "finishedAt": "2", "labels": {"io.kubernetes.container.name": "fetch"}}}]}
JSON

# same CODE ARGUMENT... holds that both end with the exit code, and print the same.
same() {
	code=$1
	shift
	for one in native emulated; do
		program=$PODCTL
		[ $one = native ] || program=$EMULATED
		got=0
		# The emulator is a word of its own.
		# shellcheck disable=SC2086
		$program "$@" >"$dir/$one" 2>&1 || got=$?
		[ $got = "$code" ] || {
			cat "$dir/$one" >&2
			echo "check-arm64: podctl $*: exit code $got, want $code ($one)" >&2
			exit 1
		}
	done
	cmp "$dir/native" "$dir/emulated" || {
		diff "$dir/native" "$dir/emulated" >&2
		echo "check-arm64: podctl $* prints something else" >&2
		exit 1
	}
}

same 0 version --client
same 0 validate "$examples"
same 0 render "$examples/hello.yaml"
same 0 plan --snapshot "$dir/hello.json" "$examples/hello.yaml"
same 2 plan --snapshot "$dir/hello.json" --exit-code -o json "$examples/hello.yaml"
echo "check-arm64: version, validate, render and plan are as on this machine"
