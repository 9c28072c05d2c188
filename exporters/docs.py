"""
The reference of all metrics, from the catalog::

    python -m exporters.docs > docs/metrics.md
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence

from tracer.catalog import (
    CAPABILITIES,
    CAUSES,
    LABELS,
    LOSSES,
    METRICS,
    OPTIONAL_CAPABILITIES,
)

_INTRODUCTION = """\
# Metrics

<!-- Written by `python -m exporters.docs > docs/metrics.md`; change tracer/catalog.py instead. -->

Served at `/metrics`, by default on `127.0.0.1:9435`, in seconds, bytes and ratios throughout.
What cannot be told on a machine is absent, never zero: `tailtrace_probe_available` says so.
Exemplars come with OpenMetrics, and Prometheus keeps them when started with
`--enable-feature=exemplar-storage`. No label holds a process, thread or step number. A tenant
without a process, a step or a deschedule for a quarter of an hour is left out until it comes back.
"""


def reference() -> str:
    """The page as Markdown."""
    return "\n".join(
        [
            _INTRODUCTION,
            _table(
                ("metric", "type", "labels", "what it tells"),
                ((f"`{m.name}`", m.type, _code(m.labels), m.help) for m in METRICS),
            ),
            "## Labels\n",
            _table(("label", "meaning"), ((f"`{k}`", v) for k, v in LABELS.items())),
            "## Causes\n",
            "Every nanosecond of a step's wall time is in exactly one of them. In those with a\n"
            "mark, a runnable thread did not execute.\n",
            _table(
                ("cause", "group", "deschedule", "meaning"),
                ((f"`{c.name}`", c.group, "✓" * c.deschedule, c.help) for c in CAUSES),
            ),
            "## Capabilities\n",
            "What a kernel may or may not tell; those with a mark are rightly missing on some.\n",
            _table(
                ("capability", "optional", "what it tells"),
                (
                    (f"`{name}`", "✓" * (name in OPTIONAL_CAPABILITIES), meaning)
                    for name, meaning in CAPABILITIES.items()
                ),
            ),
            "## Losses\n",
            "Values of `reason`. Without a mark, only a name is not known, or history.\n",
            _table(
                ("reason", "falsifies figures", "meaning"),
                ((f"`{loss.name}`", "✓" * loss.falsifies, loss.help) for loss in LOSSES),
            ),
        ]
    )


def _code(names: Iterable[str]) -> str:
    return " ".join(f"`{name}`" for name in names)


def _table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [columns, ["---"] * len(columns), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


if __name__ == "__main__":
    sys.stdout.write(reference())
