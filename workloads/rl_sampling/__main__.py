"""``python -m workloads.rl_sampling``: run the workload and print its own account of it."""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from workloads.rl_sampling import account, placing
from workloads.rl_sampling.account import Summary, Timed
from workloads.rl_sampling.company import ActorError, Company, numbers
from workloads.rl_sampling.options import Options, parse
from workloads.rl_sampling.pinning import Pinning, pinning, possible
from workloads.rl_sampling.slot_queue import new_queue


def main() -> int:
    asked, cpus = parse(), os.sched_getaffinity(0)
    options = replace(
        asked,
        variant=possible(asked.variant, cpus),
        queue=placing.possible(asked.queue, placing.nodes()),
    )
    if options.variant is not asked.variant:
        _say(f"variant {asked.variant} needs 2 CPUs, there is 1: running {options.variant}")
    if options.queue is not asked.queue:
        _say(f"queue {asked.queue} needs 2 NUMA nodes, there is 1: it lies where it is touched")
    placed = pinning(options.variant, cpus)
    try:
        rows = _run(options, placed)
    except ActorError as error:
        _say(str(error))
        return 1
    if options.truth:
        with options.truth as file:
            account.write(rows, file)
    summaries = account.summarise(rows)
    if options.json:
        print(json.dumps(_summary(options, placed, summaries), indent=2))
    else:
        print(_headline(options, placed), account.table(summaries), sep="\n")
    return 0


def _run(options: Options, placed: Pinning) -> list[Timed]:
    """Samplers stop first: the inference actor is still there to answer their last step."""
    os.sched_setaffinity(0, placed.group)
    with (
        new_queue(sum(options.samplers.values())) as queue,
        Company(queue, blas_threads=1 + options.helpers) as company,
    ):
        placing.place(queue[0], options.queue, placed.inference_thread, placing.nodes())
        _start(company, options, placed)
        for seconds_left in company.watch(options.duration):
            _progress(seconds_left)
        return company.stop("sampler") + company.stop("inference")


def _start(company: Company, options: Options, placed: Pinning) -> None:
    company.start(
        "inference",
        placed.inference_process,
        batch=options.batch,
        hidden=options.hidden,
        thread_cpus=numbers(placed.inference_thread),
        service_threads=options.service_threads,
        service_cpus=numbers(placed.service_threads),
        service_rate=options.service_rate,
        service_burst=options.service_burst,
    )
    tenants = [tenant for tenant, count in options.samplers.items() for _ in range(count)]
    for index, tenant in enumerate(tenants):
        company.start(
            "sampler",
            placed.samplers,
            index=index,
            tenant=tenant,
            environments=options.environments,
        )
    if options.antagonist:
        company.start("antagonist", placed.neighbour)


def _summary(options: Options, placed: Pinning, summaries: Sequence[Summary]) -> Mapping[str, Any]:
    return {
        "workload": "rl_sampling",
        "variant": options.variant,
        "queue": options.queue,
        "samplers": options.samplers,
        "antagonist": options.antagonist,
        "cpus": {part: sorted(cpus) for part, cpus in asdict(placed).items()},
        "steps": [asdict(summary) for summary in summaries],
    }


def _headline(options: Options, placed: Pinning) -> str:
    parts = {
        f"{sum(options.samplers.values())} samplers": placed.samplers,
        "inference thread": placed.inference_thread,
        f"{options.service_threads} service threads": placed.service_threads,
    }
    if options.antagonist:
        parts["antagonist"] = placed.neighbour
    return f"{options.variant}: " + ", ".join(
        f"{part} on CPU {numbers(sorted(cpus))}" for part, cpus in parts.items()
    )


def _progress(seconds_left: float) -> None:
    if sys.stderr.isatty():
        # What is printed next overwrites it.
        state = "starting" if seconds_left == math.inf else f"{seconds_left:.0f} s left"
        print(f"rl_sampling: {state:20}", end="\r", file=sys.stderr)


def _say(line: str) -> None:
    print(f"rl_sampling: {line}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
