#!/bin/sh
# A session with podctl, as README shows it. `make demo` runs it.
set -eu

run() {
	printf '\n$ podctl %s\n' "$*"
	"$PODCTL" "$@"
}

run node up --load "$BIN/pause.tar" --load "$BIN/demo.tar"
run plan docs/examples/hello.yaml
run apply --wait --timeout 2m docs/examples/hello.yaml
run probe hello
run get -o wide
run plan docs/examples/hello.yaml
printf '\nThe pod runs. Try: %s logs -f hello; %s delete hello; make demo-down\n' "$PODCTL" "$PODCTL"
