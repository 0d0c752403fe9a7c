#!/bin/sh
# Runs the commands of README in bare Debian 12 roots: `make demo` and `make demo-down` in one, and
# each target of `make check` in one of its own, so that a target that does not install what it needs
# fails. A root has git, make, ca-certificates and Go, and namespaces of its own for mounts,
# processes and the network. `make test-bare` runs it.
#
# usage: bare.sh DIRECTORY [full] TARGET...
#
# Unless the second argument is "full", lint, unit and race run for one package and e2e runs one
# test, which needs the same programs as all of them.
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
'') part="PACKAGES=./runtime/filelock RUN=^TestE2E/hello$" ;;
full) part= ;;
*) fail "BARE is '$extent'; it may be empty or full" ;;
esac
exec 9>/run/podctl-test-bare.lock
flock -n 9 || fail "it runs already on this machine"
[ -z "$(git status --porcelain)" ] || echo "test-bare: what is not committed is not tested: the roots get a clone of the last commit"

# All roots begin as the same archive. It is kept by the sum of the script that makes it.
mkdir -p "$dir"
key=$(sha256sum <"$here/root.sh")
archive=$dir/$(printf %.12s "$key").tar
[ -e "$archive" ] || sh "$here/../quiet.sh" "making a bare Debian 12 (about a minute)" sh "$here/root.sh" "$archive"

root=$dir/root room=
# clean ends what runs in a root and removes it. The kernel unmounts what was mounted there.
clean() {
	[ -z "$room" ] || kill -KILL "$room" 2>/dev/null || true
	room=
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
	setpriv --pdeathsig KILL sh "$here/room.sh" "$root" "$2" &
	room=$!
	wait "$room" || failed="$failed $name"
	room=
	echo "=== $name took $(($(date +%s) - began)) s"
}

in_root demo "sh hack/bare/demo.sh"
for target in "$@"; do
	own=
	# The shared build cache may have what a compiler for C made on the outer machine.
	[ "$target" != race ] || own="GOCACHE=/root/.cache/race "
	in_root "$target" "${own}make $target $part"
done
[ -z "$failed" ] || fail "failed:$failed"
echo "test-bare: demo and $* ran in bare roots"
