"""The commands that read recordings."""

from __future__ import annotations

import argparse

from tracer.cli.console import print_json, print_lines, print_report, recording_of, write_file
from tracer.errors import UnavailableError, UsageError
from tracer.judge import explain as explainer
from tracer.judge.migration import compare as migration
from tracer.judge.migration import criteria, fleet, html, text
from tracer.judge.migration.criteria import Criteria
from tracer.judge.migration.fleet import Period
from tracer.judge.migration.verdict import Verdict
from tracer.record.prometheus import Prometheus
from tracer.record.recording import Recording
from tracer.record.window import REPORT_MEMORY, Answer


def report(arguments: argparse.Namespace) -> int:
    """
    Print where the tail went, and who took it: of a recording, or of the agent that runs here.
    """
    with Recording.open(recording_of(arguments)) as recording:
        summary = recording.summary()
        memory = recording.answers().get(REPORT_MEMORY, Answer(None, ()))
    return print_report(summary, arguments.json, memory)


def explain(arguments: argparse.Namespace) -> int:
    """
    Explain one slow step in full: its ledger beside the median step's, and who had the CPU.

    From a recording, or from the history of the agent that runs here. Of every kind the slowest
    steps are recorded. Exits with 3 when this one is not among them.
    """
    with Recording.open(recording_of(arguments)) as recording:
        steps = recording.slow_steps(arguments.step)
        ended = [recording.unix_seconds(step.end_ns) for step in steps]
    if not steps:
        raise UnavailableError(
            f"step {arguments.step}: is not among the slowest of its kind, which alone are "
            f"recorded whole; `tailtrace report` names some"
        )
    if arguments.json:
        print_json(list(map(explainer.as_dict, steps, ended)))
    else:
        print_lines(
            "\n\n\n".join(map("\n".join, map(explainer.in_full, steps, ended))).splitlines()
        )
    return 0


def compare(arguments: argparse.Namespace) -> int:
    """
    Judge a migration by a recording before it and one after it, or by what a Prometheus server has.

    Exits with 0 when it passes, 1 when it fails, 3 when that cannot be told, with the reason.
    """
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
    before, after = arguments.recordings
    with Recording.open(before) as was, Recording.open(after) as now:
        return migration.compare(was, now, wanted)


def _of_fleet(arguments: argparse.Namespace, wanted: Criteria) -> Verdict:
    if arguments.recordings or not (arguments.before and arguments.after):
        raise UsageError("--prometheus goes with --before RANGE and --after RANGE alone")
    window = arguments.window
    periods = Period.parse(arguments.before, window), Period.parse(arguments.after, window)
    selectors = arguments.selector, arguments.after_selector or arguments.selector
    server = Prometheus(arguments.prometheus, arguments.timeout)
    return fleet.compare(server, selectors, periods, wanted)
