"""
Load and attach every program, say what can be told here and why not the rest.

Exits with 1 when something that tracing needs is missing, with 3 when the kernel side cannot
be loaded at all. With a recording it is what could be told where that was made.

With --books, follows every thread of the targets for a while, and compares what was traced with
the kernel's own counts; exits with 1 when they differ over all threads, with 3 without targets.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import asdict

from tracer.agent.audit import audit
from tracer.agent.kernel_side import capabilities, kernel_side
from tracer.cli.console import print_json, print_lines, say
from tracer.cli.options import Parser, add_config, add_recording, seconds, settings_of
from tracer.cli.targets import processes_of
from tracer.config import Config
from tracer.host.machine import Machine
from tracer.judge import books, locality
from tracer.judge.check import as_lines, missing
from tracer.memory.syscalls import why_not
from tracer.model import Capability
from tracer.record.recording import Recording
from tracer.targets.pod_watch import PodWatch


def add_options(sub: Parser) -> None:
    add_config(sub)
    add_recording(sub)
    sub.add_argument(
        "--books",
        type=seconds,
        nargs="?",
        const=10.0,
        metavar="SECONDS",
        help="instead, hold the books of the targets against the kernel's own counts [10]",
    )


def main(arguments: argparse.Namespace) -> int:
    if arguments.recording:
        with Recording.open(arguments.recording) as recording:
            return _print_capabilities(recording.meta.capabilities, arguments.json)
    settings = settings_of(arguments)
    if arguments.books:
        return _check_books(settings, arguments.books, arguments.json)
    machine, pods = Machine.read(), PodWatch(settings.kubelet)
    pods.ask()
    with kernel_side(settings, machine) as kernel:
        instructions = kernel.verified_instructions()
    placement = locality.placement(machine, why_not())
    told = capabilities(kernel.plan.capabilities, placement, pods.capabilities)
    return _print_capabilities(told, arguments.json, verified_instructions=instructions)


def _check_books(settings: Config, seconds: float, as_json: bool) -> int:
    threads, lost = audit(settings, processes_of(settings), seconds, say)
    if as_json:
        print_json(books.as_dict(threads, lost))
    else:
        print_lines(books.as_lines(threads, lost))
    return 0 if all(entry.agrees for entry in books.totals(threads)) else 1


def _print_capabilities(told: Sequence[Capability], as_json: bool, **more: object) -> int:
    if as_json:
        print_json({"capabilities": [asdict(each) for each in told], **more})
    else:
        print_lines(as_lines(told))
    return 1 if missing(told) else 0
