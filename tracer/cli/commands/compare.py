"""
Judge a migration by a recording before it and one after it, or by what a Prometheus server has.

Exits with 0 when it passes, 1 when it fails, 3 when that cannot be told, with the reason.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from tracer.cli.console import print_json, print_lines, write_file
from tracer.cli.options import Parser, seconds
from tracer.errors import UsageError
from tracer.judge.migration import criteria, fleet, html, text
from tracer.judge.migration.compare import compare
from tracer.judge.migration.criteria import Criteria
from tracer.judge.migration.fleet import Period
from tracer.judge.migration.verdict import Verdict
from tracer.record.prometheus import Prometheus
from tracer.record.recording import Recording

_WINDOW_SECONDS, _ANSWER_SECONDS = 120, 30.0
_OF_FLEETS = ("before", "after", "selector", "after_selector", "window", "timeout")


def add_options(sub: Parser) -> None:
    sub.add_argument("recordings", type=Path, nargs="*", help="BEFORE and AFTER")
    sub.add_argument("--prometheus", metavar="URL", help="compare this server's metrics")
    sub.add_argument("--before", metavar="RANGE", help="START/END of metrics, in ISO 8601")
    sub.add_argument("--after", metavar="RANGE", help="the same, after the migration")
    sub.add_argument("--selector", help='which agents, as PromQL has it: cluster="a"')
    sub.add_argument("--after-selector", metavar="SELECTOR", help="after, where it is another")
    sub.add_argument(
        "--window",
        type=_whole_seconds,
        metavar="SECONDS",
        help="several scrapes long; 120 when not given",
    )
    sub.add_argument(
        "--timeout",
        type=seconds,
        metavar="SECONDS",
        help="that an answer may take; 30 when not given",
    )
    sub.add_argument("--criteria", type=Path, metavar="FILE", help="YAML, docs/verdict.md")
    sub.add_argument("--html", type=Path, metavar="FILE", help="write a page with the curves, too")
    sub.add_argument("--markdown", action="store_true", help="print Markdown")


def main(arguments: argparse.Namespace) -> int:
    wanted = criteria.load(arguments.criteria) if arguments.criteria else Criteria()
    verdict = (_of_fleet if arguments.prometheus else _of_recordings)(arguments, wanted)
    if arguments.html:
        write_file(arguments.html, html.as_html(verdict))
    if arguments.json:
        print_json(text.as_dict(verdict))
    else:
        print_lines([text.as_markdown(verdict)] if arguments.markdown else text.as_lines(verdict))
    return verdict.exit_code


def _of_recordings(arguments: argparse.Namespace, wanted: Criteria) -> Verdict:
    if len(arguments.recordings) != 2:
        raise UsageError("give two recordings, BEFORE and AFTER; or --prometheus URL")
    if given := [name for name in _OF_FLEETS if getattr(arguments, name) is not None]:
        raise UsageError(f"--{given[0].replace('_', '-')} goes with --prometheus URL alone")
    before, after = arguments.recordings
    with Recording.open(before) as was, Recording.open(after) as now:
        return compare(was, now, wanted)


def _of_fleet(arguments: argparse.Namespace, wanted: Criteria) -> Verdict:
    if arguments.recordings or not (arguments.before and arguments.after):
        raise UsageError("--prometheus goes with --before RANGE and --after RANGE alone")
    window = arguments.window or _WINDOW_SECONDS
    periods = Period.parse(arguments.before, window), Period.parse(arguments.after, window)
    selector = arguments.selector or ""
    selectors = selector, arguments.after_selector or selector
    server = Prometheus(arguments.prometheus, arguments.timeout or _ANSWER_SECONDS)
    return fleet.compare(server, selectors, periods, wanted)


def _whole_seconds(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 10 <= int(text[:6]) <= 86_400):
        raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds, 10 to 86400")
    return int(text)
