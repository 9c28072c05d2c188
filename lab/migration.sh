#!/bin/sh
# Runs in a guest: records the steady workload, pinned to a CPU, then asks what the machine is and what
# carries the tail.
#
#   lab/migration.sh NAME SECONDS [NAME SECONDS]...
#
# Each recording begins with LAB_OUT/NAME.ready and is LAB_OUT/NAME.db in the end.
set -e
cd "$(dirname "$0")/.."
PATH=.venv/bin:$PATH

while [ $# -gt 0 ]; do
	# On a disk of the guest's: SQLite's log cannot lie in a directory that is shared with the host.
	recording=/var/tmp/$1.db
	tailtrace record -o "$recording" --duration "$2" >"$LAB_OUT/$1.report.txt" &
	recorder=$!
	until [ -s "$recording" ]; do sleep 0.2; done # it is attached
	taskset -c 2 python -m workloads.steady --duration "$2" >/dev/null &
	touch "$LAB_OUT/$1.ready"
	wait $recorder
	touch "$LAB_OUT/$1.over"
	wait
	cp "$recording" "$LAB_OUT"
	shift 2
done
tailtrace doctor --tail "$recording" >"$LAB_OUT/doctor.txt" || [ $? -eq 1 ] # it misleads: so it says
