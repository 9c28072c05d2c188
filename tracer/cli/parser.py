"""The command line as a whole: what a word on it is, and the help."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from importlib import import_module
from typing import NoReturn

from tracer.errors import UsageError

COMMANDS = (
    "check",
    "doctor",
    "selftest",
    "memory",
    "run",
    "record",
    "top",
    "report",
    "explain",
    "compare",
    "timeline",
)
"""Modules of ``tracer.cli.commands``, in the order of the help."""

_EXAMPLES = """\
examples:
  tailtrace check                        # what can be told on this machine, and why not the rest
  tailtrace doctor                       # what this machine is, and which remedies can work on it
  tailtrace selftest                     # provoke each cause, see that it is named
  tailtrace memory                       # on which NUMA nodes memory is, and threads run
  tailtrace run                          # trace every process that marks its steps, serve metrics
  tailtrace run --duration 30            # the same for 30 s, then print the report
  tailtrace top                          # what is going on now, every 2 s
  tailtrace record -o before.db --duration 30m
  tailtrace report                       # what the agent that runs here has found
  tailtrace explain 979                  # one of its slow steps in full
  tailtrace compare before.db after.db   # did the migration help? exit code 0 yes, 1 no, 3 unsure
"""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message}; see: {self.prog} --help")


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """
    The arguments, with the command's function as ``command``.

    Only the command that is called is imported: what the others need takes as long again.
    """
    root = _Parser(
        prog="tailtrace",
        description="Where inference latency goes: all of a slow step, and who took it.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    subparsers = root.add_subparsers(metavar="COMMAND", required=True)
    for name in [word for word in argv[:1] if word in COMMANDS] or COMMANDS:
        command = import_module(f"tracer.cli.commands.{name}")
        summary, _, details = (command.__doc__ or "").strip().partition("\n")
        sub = subparsers.add_parser(name, help=summary, description=summary + details)
        sub.set_defaults(command=command.main)
        sub.add_argument("--json", action="store_true", help="print JSON for programs")
        command.add_options(sub)
    return root.parse_args(argv)
