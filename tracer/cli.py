"""
The command line: ``tailtrace COMMAND``. A command's docstring is its help.

Exit codes: 0 yes, 1 no, 2 usage or configuration, 3 cannot be told here.
"""

from __future__ import annotations

import argparse
import itertools
import json
import logging
import signal
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import NoReturn

from exporters.prometheus import Page
from exporters.server import serving
from tracer import config
from tracer.agent.agent import Agent
from tracer.config import Config
from tracer.errors import TailtraceError, UnavailableError, UsageError
from tracer.judge import doctor as judge
from tracer.judge.check import as_lines, missing
from tracer.judge.report import as_dict, report
from tracer.kernel.btf import Btf
from tracer.kernel.hooks import plan
from tracer.kernel.trace import KernelTrace
from tracer.selftest import verdict
from tracer.selftest.selftest import selftest as provoke_all
from tracer.targets.processes import Processes

_PUBLISH_SECONDS = 5  # a third of a usual scrape interval: publishing costs more than joining
_EXAMPLES = """\
examples:
  tailtrace check                       # what can be told on this machine, and why not the rest
  tailtrace run                         # trace every process that marks its steps, serve metrics
  tailtrace run --duration 30           # the same for 30 s, then print the report
  tailtrace run --config tailtrace.yaml --quiet
"""


def check(arguments: argparse.Namespace) -> int:
    """
    Load and attach every program, say what can be told here and why not the rest.

    Exits with 1 when something that tracing needs is missing, with 3 when the kernel side cannot
    be loaded at all.
    """
    settings = _settings(arguments)
    here = plan(Btf.of_kernel())
    with KernelTrace(here, settings.tenants.max + 1, int(settings.outlier_ms * 1e6)) as kernel:
        instructions = kernel.verified_instructions()
    if arguments.json:
        capabilities = [asdict(each) for each in here.capabilities]
        _print_json({"capabilities": capabilities, "verified_instructions": instructions})
    else:
        print("\n".join(as_lines(here.capabilities)))
    return 1 if missing(here.capabilities) else 0


def run(arguments: argparse.Namespace) -> int:
    """
    Trace until interrupted, or for --duration seconds; serve metrics; print the report.

    On a terminal a report is printed every 10 s. The last one is always printed.
    """
    settings = _settings(arguments)
    page = Page(interval_seconds=_PUBLISH_SECONDS)
    with Agent(settings) as agent, serving(settings.address, page) as (host, port):
        live = _live_report(agent) if sys.stdout.isatty() and not arguments.quiet else _nothing
        print(f"tailtrace: tracing; metrics on http://{host}:{port}/metrics", file=sys.stderr)
        if arguments.ready_file:
            arguments.ready_file.write_text(f"{host}:{port}\n")

        seconds = itertools.count()

        def every_second() -> None:
            if next(seconds) % _PUBLISH_SECONDS == 0:
                page.publish(agent.families())
            live()

        agent.run(_until(arguments.duration), every_second)
        summary = agent.summary()
    if arguments.json:
        _print_json(as_dict(summary))
    else:
        print("\n".join(report(summary)))
    return 0


def doctor(arguments: argparse.Namespace) -> int:
    """
    Say what this machine is, what on it lengthens tails or misleads, and which remedies can work.

    Exits with 1 when something makes measurements of this machine misleading.
    """
    targets = Processes(_settings(arguments)).scan().new
    found = judge.examine(pids=arguments.pid or [target.pid for target in targets])
    if arguments.json:
        _print_json(judge.as_dict(found))
    else:
        print("\n".join(judge.as_lines(found, arguments.full)))
    return 1 if found.misleading else 0


def selftest(arguments: argparse.Namespace) -> int:
    """
    Provoke each cause with harmless programs of its own, and see whether it is named.

    Takes half a minute and root. Exits with 1 when a cause was misnamed, with 3 when the kernel
    side cannot be loaded, or when all CPUs are somebody's alone.
    """
    targets = Processes(_settings(arguments)).scan().new
    rows = provoke_all(targets, arguments.only, arguments.anyway, _say)
    if arguments.json:
        _print_json(verdict.as_dict(rows))
    else:
        print("\n".join(verdict.as_lines(rows)))
    return verdict.exit_code(rows)


def _say(text: str) -> None:
    """Progress, which is nobody's result."""
    print(f"tailtrace: {text}", file=sys.stderr)


def _settings(arguments: argparse.Namespace) -> Config:
    return config.load(arguments.config) if arguments.config else Config()


def _until(seconds: float | None) -> Callable[[], bool]:
    """Whether the time is over, or somebody asked to stop."""
    end = time.monotonic() + seconds if seconds else float("inf")
    asked: list[int] = []
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda received, _: asked.append(received))
    return lambda: bool(asked) or time.monotonic() >= end


def _live_report(agent: Agent, every: int = 10) -> Callable[[], None]:
    due = time.monotonic() + every

    def show() -> None:
        nonlocal due
        if time.monotonic() >= due:
            due += every
            print("\n".join(report(agent.summary())), end="\n\n", flush=True)

    return show


def _nothing() -> None:
    """What is done live when nobody looks."""


def _print_json(value: object) -> None:
    json.dump(value, sys.stdout, indent=2)
    print()


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value <= 1e7:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds above 0")
    return value


def _list(text: str) -> list[str]:
    return text.split(",")


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message}; see: {self.prog} --help")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="tailtrace",
        description="Where inference latency goes: all of a slow step, and who took it.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    for command in (check, doctor, selftest, run):
        summary, _, details = (command.__doc__ or "").strip().partition("\n")
        sub = commands.add_parser(command.__name__, help=summary, description=summary + details)
        sub.set_defaults(command=command)
        sub.add_argument("--config", type=Path, metavar="FILE", help="YAML, docs/configuration.md")
        sub.add_argument("--json", action="store_true", help="print JSON for programs")
        if command is doctor:
            sub.add_argument("--full", action="store_true", help="more than a screen: every detail")
            sub.add_argument(
                "--pid", type=int, action="append", metavar="PID", help="not the targets, but this"
            )
        if command is selftest:
            sub.add_argument(
                "--only", type=_list, default=[], metavar="CAUSE[,CAUSE]", help="not all of them"
            )
            sub.add_argument(
                "--anyway", action="store_true", help="also on CPUs that a target has to itself"
            )
        if command is run:
            sub.add_argument("--duration", type=_seconds, metavar="SECONDS", help="then stop")
            sub.add_argument("--quiet", action="store_true", help="no live reports")
            sub.add_argument(
                "--ready-file", type=Path, metavar="FILE", help="written once tracing has begun"
            )
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    logging.basicConfig(format="tailtrace: %(message)s")
    try:
        arguments = _parser().parse_args(argv)
        code: int = arguments.command(arguments)
    except TailtraceError as e:
        print(f"tailtrace: {e}", file=sys.stderr)
        return e.exit_code
    except BrokenPipeError:  # the reader of our output has gone
        return UnavailableError.exit_code
    return code


if __name__ == "__main__":
    sys.exit(main())
