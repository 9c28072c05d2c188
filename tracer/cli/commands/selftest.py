"""
Provoke each cause with harmless programs of its own, and see whether it is named.

Takes half a minute and root. Exits with 1 when a cause was misnamed, with 3 when the kernel
side cannot be loaded, or when all CPUs are somebody's alone.
"""

from __future__ import annotations

import argparse

from tracer.cli.console import print_json, print_lines, say
from tracer.cli.options import Parser, add_config, settings_of
from tracer.cli.targets import processes_of
from tracer.selftest import verdict
from tracer.selftest.selftest import selftest


def add_options(sub: Parser) -> None:
    add_config(sub)
    sub.add_argument(
        "--only", type=_list, default=[], metavar="CAUSE[,CAUSE]", help="not all of them"
    )
    sub.add_argument(
        "--anyway", action="store_true", help="also on CPUs that a target has to itself"
    )
    sub.add_argument(
        "--within",
        type=_share,
        default=0.01,
        metavar="PERCENT",
        help="of the truth is what the tracer must tell [1]",
    )


def main(arguments: argparse.Namespace) -> int:
    targets = processes_of(settings_of(arguments)).scan().new
    rows = selftest(targets, arguments.only, arguments.anyway, arguments.within, say)
    if arguments.json:
        print_json(verdict.as_dict(rows))
    else:
        print_lines(verdict.as_lines(rows))
    return verdict.exit_code(rows)


def _share(percent: str) -> float:
    try:
        value = float(percent)
    except ValueError:
        value = 0.0
    if not 0 < value <= 100:
        raise argparse.ArgumentTypeError(f"{percent!r} is no percentage above 0")
    return value / 100


def _list(text: str) -> list[str]:
    return text.split(",")
