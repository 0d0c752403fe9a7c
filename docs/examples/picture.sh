#!/bin/sh
# Records the picture of README: plan, apply and an edit, on a node of its own. `make picture` runs it.
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
{
	show plan hello.yaml
	show apply --wait hello.yaml
	sed -i 's/5s/1s/' hello.yaml
	show plan hello.yaml
	show get -o wide
} >session.txt
p delete hello >/dev/null 2>&1
"$BIN/picture" <session.txt
