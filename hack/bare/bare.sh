#!/bin/sh
# Runs the commands of README in bare Debian 12 roots: `make demo` and `make demo-down` in one, and
# each target of `make check` in one of its own, so that a target that does not install what it needs
# fails. A root has git, make, ca-certificates and Go, and namespaces of its own for mounts,
# processes and the network. `make test-bare` runs it.
#
# usage: bare.sh DIRECTORY EXTENT TARGET...
#
# If EXTENT is empty, lint, unit and race run for one package, e2e runs one test and
# conformance-sample one group, which needs the same programs as all of them. "full" runs them completely. "cold" does so with empty build caches,
# to measure how long a target takes the first time.
set -eu

dir=$1 extent=$2
shift 2
here=$(cd "$(dirname "$0")" && pwd)
source=$(git rev-parse --show-toplevel)

fail() {
	echo "test-bare: $*" >&2
	exit 1
}

[ "$(id -u)" = 0 ] || fail "only root can make a root and namespaces"
case $extent in
'') part="PACKAGES=./runtime/filelock RUN=^TestE2E/hello$ GROUP=log-path" ;;
full | cold) part= ;;
*) fail "BARE is '$extent'; it may be empty, full or cold" ;;
esac
exec 9>/run/podctl-test-bare.lock
flock -n 9 || fail "another run is in progress on this machine"
[ -z "$(git status --porcelain)" ] || echo "test-bare: uncommitted changes are not tested: the roots contain a clone of the last commit"

# All roots start from one archive. Its name is the checksum of the script that makes it.
mkdir -p "$dir"
key=$(sha256sum <"$here/root.sh")
archive=$dir/$(printf %.12s "$key").tar
[ -e "$archive" ] || sh "$here/../quiet.sh" "making a bare Debian 12 (about a minute)" sh "$here/root.sh" "$archive"

root=$dir/root job=
# clean stops the command in a root and removes the root. The kernel unmounts everything below it.
clean() {
	[ -z "$job" ] || kill -KILL "$job" 2>/dev/null || true
	job=
	until rm -rf --one-file-system "$root" 2>/dev/null; do
		sleep 1
	done
}
trap clean EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# in_root NAME COMMAND... runs a shell command in a root of its own, in a clone of the sources.
failed=
in_root() {
	name=$1 began=$(date +%s)
	echo "=== $name in a bare root"
	clean
	mkdir -p "$root"
	tar -xf "$archive" -C "$root"
	git clone --quiet --no-hardlinks "$source" "$root/root/podctl"
	# In the background, a signal can end it.
	setpriv --pdeathsig KILL sh "$here/enter.sh" "$root" "$2" &
	job=$!
	wait "$job" || failed="$failed $name"
	job=
	echo "=== $name took $(($(date +%s) - began)) s"
}

cold=
[ "$extent" != cold ] || cold="GOCACHE=/root/.cache/cold "
in_root demo "${cold}sh hack/bare/demo.sh"
for target in "$@"; do
	own=$cold
	# The shared build cache may contain objects that a C compiler made on the outer machine.
	[ "$target" != race ] || own="GOCACHE=/root/.cache/race "
	in_root "$target" "${own}make $target $part"
done
[ -z "$failed" ] || fail "failed:$failed"
echo "test-bare: demo and $* ran in bare roots"
