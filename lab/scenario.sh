#!/bin/sh
# Runs in the guest: traces the RL sampling workload for a minute, says what carries its tail.
#
# The workload is small, as an emulated CPU is slow, and starts once the tracer is attached, as an
# emulated CPU is not safe against code that is patched under it. LAB_OUT/ready is there when it runs.
set -e
cd "$(dirname "$0")/.."
PATH=.venv/bin:$PATH

cat >"$LAB_OUT/tailtrace.yaml" <<'YAML'
stall_probe_hz: 250
YAML
(
	until [ -s "$LAB_OUT/run.db" ]; do sleep 0.2; done
	sleep 2
	python -m workloads.rl_sampling --duration 45 --samplers policy-a=1 --environments 2 --batch 2 \
		--hidden 64 --service-threads 1 >/dev/null &
	sleep 12
	touch "$LAB_OUT/ready"
	wait
) &
tailtrace record -o "$LAB_OUT/run.db" --config "$LAB_OUT/tailtrace.yaml" --duration 60 >/dev/null
wait

echo "$ tailtrace report run.db"
tailtrace report "$LAB_OUT/run.db"
echo
echo "$ tailtrace doctor --tail run.db"
tailtrace doctor --tail "$LAB_OUT/run.db" || true
