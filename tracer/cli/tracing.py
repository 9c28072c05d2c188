"""``tailtrace run`` once its programs are being loaded: trace, serve, remember, report."""

from __future__ import annotations

import argparse
import sys

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
    until,
    write_file,
)
from tracer.cli.options import text_of
from tracer.cli.publishing import answer, node_name, publish
from tracer.config import Config
from tracer.judge.report import report
from tracer.kernel.trace import KernelTrace
from tracer.record.history import keeping
from tracer.record.window import WINDOW_SECONDS

_PUBLISH_SECONDS = 5  # a third of a usual scrape interval: publishing costs more than joining
_REPORT_SECONDS = 10


def trace(arguments: argparse.Namespace, settings: Config, kernel: KernelTrace) -> int:
    page, live = Page(interval_seconds=_PUBLISH_SECONDS), Live(node_name())
    access = Access(arguments.web_config)
    with (
        Agent(settings, kernel=kernel) as agent,
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
