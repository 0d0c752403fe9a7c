#!/bin/sh
# Runs everything of `make test-vm`: test.sh VM BIN SECONDS RUN SKIP. Two machines at a time
# take one job after the other. The output of each job is shown when it has ended.
#
# The end-to-end tests that do not match SKIP run with the systemd driver, and those in which a
# cgroup matters most once more with the cgroupfs driver. A RUN that is not "." is all that runs.
set -eu

vm=$1 bin=$2 seconds=$3 run=$4 skip=$5
# Those that run apart from the others take about as long as all others.
apart='agent|many|contract|user_namespaces|hostile|runtime_restart'
cgroups='hello|replace$|resize|limits_of|out_of|delete$|^restart$|drift|node_restart'
machine=$(sh hack/vm/image.sh "$vm")
failed=$vm/failed
: >"$failed"

# jobs are in the order in which they begin, the longest first.
jobs=$vm/jobs
[ "$run" = . ] || echo "e2e.sh systemd -test.run TestE2E/($run)" >"$jobs"
[ "$run" != . ] || cat >"$jobs" <<END
e2e.sh systemd -test.run TestE2E -test.skip TestE2E/($skip|$apart)
e2e.sh systemd -test.run TestE2E/($apart) -test.skip TestE2E/($skip)
features.sh
system.sh
e2e.sh cgroupfs -test.run TestE2E/($cgroups)
packages.sh
END

# next takes the first of the jobs from the list and prints it.
next() {
	# shellcheck disable=SC2016
	flock "$jobs.lock" sh -c 'head -n 1 "$1" && sed -i 1d "$1"' next "$jobs"
}

# lane NAME runs jobs until none is left, each in a machine that is booted for it.
lane() {
	share=$vm/share-$1
	sh hack/vm/stage.sh "$share" "$bin"
	while command=$(next) && [ -n "$command" ]; do
		began=$(date +%s)
		# The words of a command are those of a script and its arguments.
		# shellcheck disable=SC2086
		sh hack/vm/run.sh "$machine" "$share" "$seconds" sh $command >"$share.log" 2>&1 || echo "$command" >>"$failed"
		echo "=== $command"
		cat "$share.log"
		echo "=== $command took $(($(date +%s) - began)) s"
	done
}

lane a &
a=$!
lane b &
b=$!
# A lane that cannot start its machines leaves jobs.
wait $a || echo "lane a" >>"$failed"
wait $b || echo "lane b" >>"$failed"
[ ! -s "$jobs" ] || cat "$jobs" >>"$failed"
[ -s "$failed" ] || exit 0
echo "test-vm: failed: $(paste -sd, "$failed")"
exit 1
