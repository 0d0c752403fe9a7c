#!/bin/sh
# Runs everything of `make test-vm`, in two machines at a time: test.sh VM BIN SECONDS PATTERN. The
# output of each script is shown when it has ended.
#
# One machine has all end-to-end tests that match the pattern, with the systemd driver. The other
# has what else there is, and with the cgroupfs driver the tests in which a cgroup matters.
set -eu

vm=$1 bin=$2 seconds=$3 pattern=$4
cgroups='TestE2E/(hello|replace$|sandbox|resize|limits_of|out_of|delete$|everything|restart$|drift|many_at_once|node_restart|contract)'
machine=$(sh hack/vm/image.sh "$vm")
failed=$vm/failed
: >"$failed"

# lane NAME COMMAND... runs commands one after the other, each in a machine that is booted for it.
lane() {
	share=$vm/share-$1
	shift
	sh hack/vm/stage.sh "$share" "$bin"
	for command; do
		began=$(date +%s)
		# The words of a command are those of a script and its arguments.
		# shellcheck disable=SC2086
		sh hack/vm/run.sh "$machine" "$share" "$seconds" sh $command >"$share.log" 2>&1 || echo "$command" >>"$failed"
		echo "=== $command"
		cat "$share.log"
		echo "=== $command took $(($(date +%s) - began)) s"
	done
}

lane systemd "e2e.sh systemd $pattern" &
lane others smoke.sh system.sh rooms.sh features.sh "e2e.sh cgroupfs $cgroups" &
wait
[ -s "$failed" ] || exit 0
echo "test-vm: failed: $(paste -sd, "$failed")"
exit 1
