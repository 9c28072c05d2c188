"""
The commands that trace, or look at the machine. Each takes its arguments, prints its result and
returns the exit code.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path

from exporters.access import Access
from exporters.live import Live
from exporters.prometheus import Page
from exporters.server import serving
from tracer.agent.agent import Agent
from tracer.agent.answers import in_report
from tracer.agent.audit import audit
from tracer.agent.memory import Memory
from tracer.cli.console import (
    every,
    print_answer,
    print_json,
    print_lines,
    print_report,
    say,
    settings_of,
    text_of,
    until,
    write_file,
)
from tracer.cli.publishing import answer, node_name, publish
from tracer.config import Config
from tracer.errors import UnavailableError, UsageError
from tracer.host.machine import Machine
from tracer.judge import books, locality
from tracer.judge import doctor as physician
from tracer.judge import memory as memory_report
from tracer.judge import report as reporter
from tracer.judge.check import as_lines, missing
from tracer.judge.misplaced import misplaced
from tracer.judge.placement import Placement
from tracer.kernel.btf import Btf
from tracer.kernel.hooks import plan
from tracer.kernel.trace import KernelTrace
from tracer.ledger.summary import Summary, summarise
from tracer.memory.accesses import remote_accesses
from tracer.memory.syscalls import why_not
from tracer.model import Capability, Target
from tracer.record.history import keeping
from tracer.record.recorder import Recorder
from tracer.record.recording import Recording
from tracer.record.replay import replay
from tracer.record.window import DOCTOR, DOCTOR_FULL, MEMORY, WINDOW_SECONDS
from tracer.selftest import verdict as selftest_verdict
from tracer.selftest.selftest import selftest as provoke_all
from tracer.targets.pod_watch import PodWatch
from tracer.targets.process import Process
from tracer.targets.processes import Processes

_PUBLISH_SECONDS = 5  # a third of a usual scrape interval: publishing costs more than joining
_REPORT_SECONDS = 10
_LOOK_SECONDS = 1  # how soon a window that was written is seen


def check(arguments: argparse.Namespace) -> int:
    """
    Load and attach every program, say what can be told here and why not the rest.

    Exits with 1 when something that tracing needs is missing, with 3 when the kernel side cannot
    be loaded at all. With a recording it is what could be told where that was made.

    With --books, follows every thread of the targets for a while, and compares what was traced with
    the kernel's own counts; exits with 1 when they differ over all threads, with 3 without targets.
    """
    if arguments.recording:
        with Recording.open(arguments.recording) as recording:
            return _print_capabilities(recording.meta.capabilities, arguments.json)
    settings = settings_of(arguments)
    if arguments.books:
        return _check_books(settings, arguments.books, arguments.json)
    machine = Machine.read()
    here = plan(Btf.of_kernel(), locality.doubt(machine))
    with KernelTrace(here, settings.tenants.max + 1, int(settings.outlier_ms * 1e6)) as kernel:
        instructions = kernel.verified_instructions()
    placement = locality.placement(machine, why_not())
    pods = PodWatch(settings.kubelet)
    pods.ask()
    capabilities = [*here.capabilities, placement, remote_accesses(), *pods.capabilities]
    return _print_capabilities(capabilities, arguments.json, verified_instructions=instructions)


def _check_books(settings: Config, seconds: float, as_json: bool) -> int:
    threads, lost = audit(settings, _processes(settings), seconds, say)
    if as_json:
        print_json(books.as_dict(threads, lost))
    else:
        print_lines(books.as_lines(threads, lost))
    return 0 if all(entry.agrees for entry in books.totals(threads)) else 1


def _print_capabilities(capabilities: Sequence[Capability], as_json: bool, **more: object) -> int:
    if as_json:
        print_json({"capabilities": [asdict(each) for each in capabilities], **more})
    else:
        print_lines(as_lines(capabilities))
    return 1 if missing(capabilities) else 0


def doctor(arguments: argparse.Namespace) -> int:
    """
    Say what this machine is, what on it lengthens tails or misleads, and which remedies can work.

    With --tail, the recording of a run on this machine, also what carries its tail, and remedies
    for that. Exits with 1 when something makes measurements of this machine misleading. With a
    recording it is what this said where that was made.
    """
    if arguments.recording:
        command = DOCTOR_FULL if arguments.full else DOCTOR
        return print_answer(arguments.recording, command, arguments.json)
    targets = _processes(settings_of(arguments)).scan().new
    pids = arguments.pid or [target.pid for target in targets]
    measured = None
    if arguments.tail:
        with Recording.open(arguments.tail) as recording:
            measured = recording.summary()
    found = physician.examine(pids=pids, measured=measured)
    if arguments.json:
        print_json(physician.as_dict(found))
    else:
        print_lines(physician.as_lines(found, arguments.full))
    return 1 if found.misleading else 0


def selftest(arguments: argparse.Namespace) -> int:
    """
    Provoke each cause with harmless programs of its own, and see whether it is named.

    Takes half a minute and root. Exits with 1 when a cause was misnamed, with 3 when the kernel
    side cannot be loaded, or when all CPUs are somebody's alone.
    """
    targets = _processes(settings_of(arguments)).scan().new
    rows = provoke_all(targets, arguments.only, arguments.anyway, arguments.within, say)
    if arguments.json:
        print_json(selftest_verdict.as_dict(rows))
    else:
        print_lines(selftest_verdict.as_lines(rows))
    return selftest_verdict.exit_code(rows)


def memory(arguments: argparse.Namespace) -> int:
    """
    Say on which NUMA nodes the targets' memory is, against where their threads run.

    Exits with 1 when something is misplaced, with 3 where nodes cannot be told. With --watch the
    last window decides, and those before it are what is usual. With a recording it is what the
    agent saw last.
    """
    if arguments.recording:
        return print_answer(arguments.recording, MEMORY, arguments.json)
    settings = settings_of(arguments)
    figures = Memory.here(settings, Machine.read(), arguments.seconds, pace=0)
    if not figures.capability.available:
        raise UnavailableError(f"no telling where memory is: {figures.capability.reason}")
    targets, processes = [_target(pid) for pid in arguments.pid or ()], _processes(settings)
    stopped = until(None)
    while not stopped():
        if not arguments.pid:
            changes = processes.scan()
            targets = [each for each in targets if each not in changes.gone] + changes.new
        if placement := figures.tick(targets):
            _print_placement(placement, arguments.json)
            if not arguments.watch:
                break
        # One process's memory is looked at in each turn: time for all of them, and some to spare.
        time.sleep(arguments.seconds / max(40, 2 * len(targets)))
    if figures.placement is None:
        raise UnavailableError("interrupted before the first window ended")
    return 1 if any(misplaced(figures.placement)) else 0


def _target(pid: int) -> Target:
    try:
        process = Process.read(pid)
    except OSError as e:
        raise UsageError(f"no process {pid}: {e.strerror}; give the pid of one that runs") from e
    return Target(0, pid, process.started_ns, process.comm, process.comm)


def _processes(settings: Config) -> Processes:
    """With the pods as the kubelet tells them now."""
    pods = PodWatch(settings.kubelet)
    pods.ask()
    return Processes(settings, pods=pods)


def _print_placement(placement: Placement, as_json: bool) -> None:
    if as_json:
        print_json(memory_report.as_dict(placement))
    else:
        print_lines([*memory_report.as_lines(placement), ""])


def run(arguments: argparse.Namespace) -> int:
    """
    Trace until interrupted, or for --duration seconds; serve metrics; print the report.

    On a terminal a report is printed every 10 s. The last one is always printed.
    """
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
        show = every(_REPORT_SECONDS, lambda: print_lines([*reporter.report(agent.summary()), ""]))
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


def record(arguments: argparse.Namespace) -> int:
    """
    Trace into a recording, until interrupted or for --duration seconds; print the report.

    What is in the file survives kill -9 and a full disk, but for the last 10 s.
    """
    settings = settings_of(arguments)
    text = text_of(arguments)
    with Agent(settings) as agent, Recorder(arguments.output, agent.meta(text)) as file:
        say(f"recording to {arguments.output}")
        write = every(WINDOW_SECONDS, lambda: file.write(agent.window()))
        agent.run(until(arguments.duration), write)
        last, summary = agent.last_window()
        file.write(last)
    return print_report(summary, arguments.json, in_report(agent.memory))


def top(arguments: argparse.Namespace) -> int:
    """
    Show what is going on, over and over: the last seconds, traced for as long as it is shown.

    With a recording that is being written, the last 10 s of that instead.
    """
    show = partial(_show, arguments.json)
    stopped = until(arguments.duration)
    if arguments.recording:
        _follow(arguments.recording, show, stopped)
        return 0
    with Agent(settings_of(arguments)) as agent:
        meta, seconds = agent.meta(configuration=""), math.ceil(arguments.interval)

        def latest() -> None:
            show(summarise(*replay([agent.window()], meta, seconds)))

        agent.run(stopped, every(arguments.interval, latest))
    return 0


def _follow(path: Path, show: Callable[[Summary], None], stopped: Callable[[], bool]) -> None:
    """Show each window that a recorder writes, until it ends."""
    shown = 0
    while not stopped():
        with Recording.open(path) as recording:
            if recording.last != shown:
                show(recording.latest())
                shown = recording.last
            if recording.closed_properly:
                return
        time.sleep(_LOOK_SECONDS)


def _show(as_json: bool, summary: Summary) -> None:
    """In place of what was shown before, where that is possible; JSON takes one line each."""
    if as_json:
        print(json.dumps(reporter.as_dict(summary)), flush=True)
        return
    if sys.stdout.isatty():
        print("\x1b[H\x1b[J", end="")  # cursor home, erase from there on
    print_lines([*reporter.top(summary), ""])
