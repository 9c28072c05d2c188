"""
Trace until interrupted, or for --duration seconds; serve metrics; print the report.

On a terminal a report is printed every 10 s. The last one is always printed.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from exporters.access import Access
from exporters.live import Live
from exporters.prometheus import Page
from exporters.server import serving
from tracer.agent.agent import Agent
from tracer.agent.answers import in_report
from tracer.cli.console import (
    every,
    print_lines,
    print_report,
    say,
    settings_of,
    text_of,
    until,
    write_file,
)
from tracer.cli.options import Parser, add_config, add_duration
from tracer.cli.publishing import answer, node_name, publish
from tracer.judge.report import report
from tracer.record.history import keeping
from tracer.record.window import WINDOW_SECONDS

_PUBLISH_SECONDS = 5  # a third of a usual scrape interval: publishing costs more than joining
_REPORT_SECONDS = 10


def add_options(sub: Parser) -> None:
    add_config(sub)
    add_duration(sub)
    sub.add_argument("--quiet", action="store_true", help="no live reports")
    sub.add_argument(
        "--web.config.file",
        dest="web_config",
        type=Path,
        metavar="FILE",
        help="YAML for TLS, client certificates and passwords, docs/prometheus.md",
    )
    sub.add_argument("--ready-file", type=Path, metavar="FILE", help="written once tracing began")


def main(arguments: argparse.Namespace) -> int:
    settings = settings_of(arguments)
    page, live = Page(interval_seconds=_PUBLISH_SECONDS), Live(node_name())
    access = Access(arguments.web_config)
    with (
        Agent(settings) as agent,
        serving(settings.address, page, live, access=access) as (host, port),
        keeping(settings.history, agent.meta(text_of(arguments)), agent.totals.lost, say) as keep,
    ):
        say(f"tracing; look at {access.scheme}://{host}:{port}, metrics are at /metrics")
        if arguments.ready_file:
            write_file(arguments.ready_file, f"{host}:{port}\n")
        regularly = every(_PUBLISH_SECONDS, lambda: publish(agent, page, live), at_once=True)
        show = every(_REPORT_SECONDS, lambda: print_lines([*report(agent.summary()), ""]))
        on_terminal = sys.stdout.isatty() and not arguments.quiet
        remember = every(WINDOW_SECONDS, lambda: keep(agent.window()))

        def every_second() -> None:
            regularly()
            remember()
            answer(agent, live)
            if on_terminal:
                show()

        agent.run(until(arguments.duration), every_second)
        last, summary = agent.last_window()
        keep(last)
    return print_report(summary, arguments.json, in_report(agent.memory))
