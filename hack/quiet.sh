#!/bin/sh
# Prints one line about a command, runs the command and shows its output only if it fails:
# quiet.sh "WHAT IT DOES (HOW LONG)" COMMAND...
set -eu

echo "$1"
shift
log=$(mktemp)
trap 'rm -f "$log"' EXIT
code=0
"$@" >"$log" 2>&1 </dev/null || code=$?
if [ "$code" != 0 ]; then
	cat "$log"
	echo "failed with exit code $code: $*"
fi >&2
exit "$code"
