#!/bin/sh
# Runs in the guest: traces the RL sampling workload for a minute, says what carries its tail.
#
# The workload is small, as an emulated CPU is slow, and starts once the tracer is attached, as an
# emulated CPU is not safe against code that is patched under it. LAB_OUT/ready is there when it runs.
# A recording needs shared memory, which LAB_OUT has none of.
set -e
cd "$(dirname "$0")/.."
PATH=.venv/bin:$PATH

cat >/dev/shm/tailtrace.yaml <<'YAML'
stall_probe_hz: 250
YAML
(
	until [ -s /dev/shm/run.db ]; do sleep 0.2; done
	sleep 2
	python -m workloads.rl_sampling --duration 45 --samplers policy-a=1 --environments 2 --batch 2 \
		--hidden 64 --service-threads 1 >/dev/null &
	sleep 12
	touch "$LAB_OUT/ready"
	wait
) &
tailtrace record -o /dev/shm/run.db --config /dev/shm/tailtrace.yaml --duration 60 >/dev/null
wait

echo "$ tailtrace report run.db"
tailtrace report /dev/shm/run.db
echo
echo "$ tailtrace doctor --tail run.db"
tailtrace doctor --tail /dev/shm/run.db || true
