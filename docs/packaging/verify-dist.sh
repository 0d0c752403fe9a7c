#!/bin/sh
# Builds everything a second time, from a copy of the sources in another directory and
# with an empty build cache, and compares: verify-dist.sh OUT VARIABLE=value...
# CACHE=GOCACHE shares the cache: faster, and a proof of less. `make verify-dist` runs it.
set -eu

out=$1
shift
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT

mkdir "$copy/src"
git ls-files -z >"$copy/files"
xargs -0 -a "$copy/files" cp --parents -t "$copy/src"
GOCACHE=${CACHE:-$copy/cache} make --no-print-directory -C "$copy/src" dist "$@" >"$copy/log" 2>&1 || {
	cat "$copy/log"
	exit 1
}
diff "$out/SHA256SUMS" "$copy/src/dist/SHA256SUMS" && echo "verify-dist: the second build is the same"
