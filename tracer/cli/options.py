"""What can be said on the command line."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

from tracer.cli import commands, drawing, reading
from tracer.errors import UsageError

_EXAMPLES = """\
examples:
  tailtrace check                        # what can be told on this machine, and why not the rest
  tailtrace doctor                       # what this machine is, and which remedies can work on it
  tailtrace selftest                     # provoke each cause, see that it is named
  tailtrace memory                       # on which NUMA nodes memory is, and threads run
  tailtrace run                          # trace every process that marks its steps, serve metrics
  tailtrace run --duration 30            # the same for 30 s, then print the report
  tailtrace top                          # what is going on now, every 2 s
  tailtrace record -o before.db --duration 1800
  tailtrace report                       # what the agent that runs here has found
  tailtrace explain 979                  # one of its slow steps in full
  tailtrace compare before.db after.db   # did the migration help? exit code 0 yes, 1 no, 3 unsure
"""

_DIGITS = 20  # of a 64-bit number

Parser = argparse.ArgumentParser


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message}; see: {self.prog} --help")


def parser() -> Parser:
    """Parsed arguments have the command's function as ``command``."""
    root = _Parser(
        prog="tailtrace",
        description="Where inference latency goes: all of a slow step, and who took it.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    subparsers = root.add_subparsers(metavar="COMMAND", required=True)
    for command, add_options in _OPTIONS.items():
        summary, _, details = (command.__doc__ or "").strip().partition("\n")
        sub = subparsers.add_parser(command.__name__, help=summary, description=summary + details)
        sub.set_defaults(command=command)
        sub.add_argument("--json", action="store_true", help="print JSON for programs")
        add_options(sub)
    return root


def _config(sub: Parser) -> None:
    sub.add_argument("--config", type=Path, metavar="FILE", help="YAML, docs/configuration.md")


def _check(sub: Parser) -> None:
    _config(sub)
    _answered(sub)
    sub.add_argument(
        "--books",
        type=_seconds,
        nargs="?",
        const=10.0,
        metavar="SECONDS",
        help="instead, hold the books of the targets against the kernel's own counts [10]",
    )


def _answered(sub: Parser) -> None:
    sub.add_argument("recording", type=Path, nargs="?", help="else of this machine, now")


def _doctor(sub: Parser) -> None:
    _config(sub)
    _answered(sub)
    sub.add_argument("--full", action="store_true", help="more than a screen: every detail")
    sub.add_argument(
        "--pid", type=int, action="append", metavar="PID", help="not the targets, but this"
    )
    sub.add_argument(
        "--tail", type=Path, metavar="RECORDING", help="made here: also remedies for its tail"
    )


def _selftest(sub: Parser) -> None:
    _config(sub)
    sub.add_argument(
        "--only", type=_list, default=[], metavar="CAUSE[,CAUSE]", help="not all of them"
    )
    sub.add_argument(
        "--anyway", action="store_true", help="also on CPUs that a target has to itself"
    )
    sub.add_argument(
        "--within",
        type=_percent,
        default=0.01,
        metavar="PERCENT",
        help="of the truth is what the tracer must tell [1]",
    )


def _memory(sub: Parser) -> None:
    _config(sub)
    _answered(sub)
    sub.add_argument(
        "--seconds", type=_seconds, default=2.0, metavar="S", help="length of a window [2]"
    )
    sub.add_argument("--watch", action="store_true", help="window after window, until interrupted")
    sub.add_argument(
        "--pid", type=int, action="append", metavar="PID", help="not the targets, but this"
    )


def _run(sub: Parser) -> None:
    _config(sub)
    sub.add_argument("--duration", type=_seconds, metavar="SECONDS", help="then stop")
    sub.add_argument("--quiet", action="store_true", help="no live reports")
    sub.add_argument(
        "--web.config.file",
        dest="web_config",
        type=Path,
        metavar="FILE",
        help="YAML for TLS, client certificates and passwords, docs/prometheus.md",
    )
    sub.add_argument("--ready-file", type=Path, metavar="FILE", help="written once tracing began")


def _record(sub: Parser) -> None:
    _config(sub)
    sub.add_argument("-o", "--output", type=Path, required=True, metavar="FILE", help="a new file")
    sub.add_argument("--duration", type=_seconds, metavar="SECONDS", help="then stop")


def _top(sub: Parser) -> None:
    _config(sub)
    sub.add_argument("recording", type=Path, nargs="?", help="one that is being written")
    sub.add_argument(
        "--interval", type=_seconds, default=2.0, metavar="SECONDS", help="2 when not given"
    )
    sub.add_argument("--duration", type=_seconds, metavar="SECONDS", help="then stop")


def _explain(sub: Parser) -> None:
    sub.add_argument("step", type=_number, metavar="STEP", help="its number, from the report")
    _report(sub)


def _timeline(sub: Parser) -> None:
    _config(sub)
    sub.add_argument("recording", type=Path, nargs="?", help="instead of what goes on now")
    sub.add_argument("-o", "--output", type=Path, required=True, metavar="FILE", help="a new file")
    sub.add_argument("--duration", type=_seconds, metavar="SECONDS", help="then stop")


def _report(sub: Parser) -> None:
    _config(sub)
    sub.add_argument(
        "recording", type=Path, nargs="?", help="else the history of the agent that runs here"
    )


def _compare(sub: Parser) -> None:
    sub.add_argument("recordings", type=Path, nargs="*", help="BEFORE and AFTER")
    sub.add_argument("--prometheus", metavar="URL", help="compare this server's metrics")
    sub.add_argument("--before", metavar="RANGE", help="START/END of metrics, in ISO 8601")
    sub.add_argument("--after", metavar="RANGE", help="the same, after the migration")
    sub.add_argument("--selector", default="", help='which agents, as PromQL has it: cluster="a"')
    sub.add_argument("--after-selector", metavar="SELECTOR", help="after, where it is another")
    sub.add_argument(
        "--window",
        type=_whole_seconds,
        default=120,
        metavar="SECONDS",
        help="several scrapes long; 120 when not given",
    )
    sub.add_argument(
        "--timeout",
        type=_seconds,
        default=30.0,
        metavar="SECONDS",
        help="that an answer may take; 30 when not given",
    )
    sub.add_argument("--criteria", type=Path, metavar="FILE", help="YAML, docs/verdict.md")
    sub.add_argument("--html", type=Path, metavar="FILE", help="write a page with the curves, too")
    sub.add_argument("--markdown", action="store_true", help="print Markdown")


_OPTIONS: dict[Callable[[argparse.Namespace], int], Callable[[Parser], None]] = {
    commands.check: _check,
    commands.doctor: _doctor,
    commands.selftest: _selftest,
    commands.memory: _memory,
    commands.run: _run,
    commands.record: _record,
    commands.top: _top,
    reading.report: _report,
    reading.explain: _explain,
    reading.compare: _compare,
    drawing.timeline: _timeline,
}


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value <= 1e7:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds above 0")
    return value


def _whole_seconds(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 10 <= int(text[:6]) <= 86_400):
        raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds, 10 to 86400")
    return int(text)


def _number(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= _DIGITS):
        raise argparse.ArgumentTypeError(f"{text!r} is no number of a step")
    return int(text)


def _percent(text: str) -> float:
    """As a share."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value <= 100:
        raise argparse.ArgumentTypeError(f"{text!r} is no percentage above 0")
    return value / 100


def _list(text: str) -> list[str]:
    return text.split(",")
