#!/bin/sh
# The first commands of README, in a bare root. They install only what they need, and say in few
# lines what they do.
set -eu

fail() {
	echo "demo: $*" >&2
	exit 1
}

log=$(mktemp)
{ make demo && make demo-down || touch "$log.failed"; } 2>&1 | tee "$log"
[ ! -e "$log.failed" ] || exit 1
grep -q 'hello.* is ready' "$log" || fail "the pod did not get ready"
[ "$(wc -l <"$log")" -le 100 ] || fail "it printed $(wc -l <"$log") lines"
for program in gcc nft qemu-system-x86_64 mmdebstrap; do
	! command -v $program || fail "it installed $program, which only tests need"
done
