"""
Recording rules: the figures that alerts and dashboards share, under the names people use.

Every rule sums *without* its own labels and so keeps those of the scrape: instance, node, pod.
"""

from __future__ import annotations

from dataclasses import dataclass

from dashboards.promql import quantile, quoted, rate
from tracer.catalog import DESCHEDULE, DESCHEDULES, NUMASTAT_DRIFT, STEP_ELAPSED, STEP_SECONDS

WINDOW = "5m"
"""Of all rates: 20 scrapes of 15 s, and at 150 ms a step 2,000 steps, enough for a p999."""


@dataclass(frozen=True, slots=True)
class Record:
    name: str
    expression: str
    help: str


_DESCHEDULES = rate(DESCHEDULE, WINDOW, "bucket")
_STEPS = rate(STEP_ELAPSED, WINDOW, "bucket")

P999_DESCHEDULE = Record(
    "p999_deschedule",
    quantile(0.999, f"sum without (cause) ({_DESCHEDULES})"),
    "99.9th percentile of a tenant's deschedules, in seconds.",
)
P999_BY_CAUSE = Record(
    "tailtrace:deschedule_seconds:p999",
    quantile(0.999, _DESCHEDULES),
    "99.9th percentile of a tenant's deschedules by cause, in seconds.",
)
STEP_P999 = Record(
    "tailtrace:step_elapsed_seconds:p999",
    quantile(0.999, _STEPS),
    "99.9th percentile of step wall time, in seconds.",
)
STEP_P50 = Record(
    "tailtrace:step_elapsed_seconds:p50",
    quantile(0.5, _STEPS),
    "Median of step wall time, in seconds.",
)
STEP_RATIO = Record(
    "step_elapsed_p999_p50",
    f"{STEP_P999.name} / {STEP_P50.name}",
    "99.9th percentile of step wall time over its median; 1 is a step without a tail.",
)
STEP_TAIL = Record(
    "tailtrace:step_tail_seconds",
    f"{STEP_P999.name} - {STEP_P50.name}",
    "What the slowest step of a thousand takes beyond the median, in seconds.",
)
PER_STEP = Record(
    "tailtrace:step_deschedule_seconds:mean",
    rate(STEP_SECONDS, WINDOW, matchers=f"cause=~{quoted(*DESCHEDULES)}")
    + f" / ignoring (cause) group_left () {rate(STEP_ELAPSED, WINDOW, 'count')}",
    "Deschedule of the mean step by cause, in seconds.",
)
DRIFT = Record(
    "numastat_drift",
    f"avg_over_time({NUMASTAT_DRIFT.name}[{WINDOW}])",
    "Share of a node's allocations that went to CPUs of other nodes, less what is usual.",
)

# A cause explains a tail when there is enough of it: what it took from a thousand steps would fill
# half of the slowest one's excess. And when it comes in long pieces: the many short waits of a
# healthy node add up to as much over a thousand steps, but none of them makes a step slow.
_ENOUGH = 0.5
_LONG = 0.05
_SHARE_OF_TAIL = f"1000 * {PER_STEP.name} / ignoring (cause) group_left () {STEP_TAIL.name}"
_PIECE_OF_TAIL = (
    f"({PER_STEP.name} * 0 + ignoring (step) group_left () {P999_BY_CAUSE.name})"
    f" / ignoring (cause) group_left () {STEP_TAIL.name}"
)
EXPLAINS_TAIL = Record(
    "tailtrace:step_tail:explained_by",
    f"({_SHARE_OF_TAIL} >= {_ENOUGH}) and ({_PIECE_OF_TAIL} >= {_LONG})",
    "Causes of deschedule that explain a step's tail; the greater, the more there is of it.",
)

RECORDS = (
    P999_DESCHEDULE,
    P999_BY_CAUSE,
    STEP_P999,
    STEP_P50,
    STEP_RATIO,
    STEP_TAIL,
    PER_STEP,
    DRIFT,
    EXPLAINS_TAIL,
)
"""In this order: each may use those before it."""
