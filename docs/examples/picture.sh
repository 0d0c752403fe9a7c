#!/bin/sh
# Records the picture in the README: an edit, its plan and its apply, on a private node. `make picture` runs it.
set -eu

work=$(mktemp -d)
trap '"$PODCTL" --state-dir "$work/s" --log-root "$work/l" --cgroup-root picture node down >/dev/null 2>&1; rm -rf "$work"' EXIT

p() { "$PODCTL" --color always --state-dir "$work/s" --log-root "$work/l" --cgroup-root picture "$@"; }
show() {
	printf '\033[1m$ podctl %s\033[0m\n' "$*"
	p "$@" 2>&1
	printf '\n'
}

p node up --load "$BIN/pause.tar" --load "$BIN/demo.tar" >/dev/null 2>&1
cp docs/examples/hello.yaml "$work/hello.yaml"
cd "$work"
p apply --wait hello.yaml >/dev/null 2>&1
{
	printf "\033[1m$ sed -i 's/5s/1s/' hello.yaml    # change an argument of one container\033[0m\n\n"
	sed -i 's/5s/1s/' hello.yaml
	show plan hello.yaml
	show apply --wait hello.yaml
} >session.txt
p delete hello >/dev/null 2>&1
"$BIN/picture" <session.txt
