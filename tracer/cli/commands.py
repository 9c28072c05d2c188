"""The commands. Each takes its arguments, prints its result and returns the exit code."""

from __future__ import annotations

import argparse
import json
import platform
import signal
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from pathlib import Path

import psutil

from exporters.live import Live
from exporters.prometheus import Page
from exporters.server import serving
from tracer import config
from tracer.agent.agent import Agent
from tracer.agent.memory import Memory
from tracer.config import Config
from tracer.errors import UnavailableError, UsageError
from tracer.host.machine import Machine
from tracer.judge import doctor as physician
from tracer.judge import locality
from tracer.judge import memory as memory_report
from tracer.judge import report as reporter
from tracer.judge.check import as_lines, missing
from tracer.judge.migration import compare as migration
from tracer.judge.migration import criteria, html, text
from tracer.judge.migration.criteria import Criteria
from tracer.judge.misplaced import misplaced
from tracer.judge.overview import overview
from tracer.judge.placement import Placement
from tracer.kernel.btf import Btf
from tracer.kernel.hooks import plan
from tracer.kernel.trace import KernelTrace
from tracer.ledger.summary import Summary
from tracer.memory.accesses import remote_accesses
from tracer.memory.syscalls import why_not
from tracer.model import Target
from tracer.record.recorder import Recorder
from tracer.record.recording import Recording
from tracer.record.window import WINDOW_SECONDS
from tracer.selftest import verdict as selftest_verdict
from tracer.selftest.selftest import selftest as provoke_all
from tracer.targets.process import Process
from tracer.targets.processes import Processes

_PUBLISH_SECONDS = 5  # a third of a usual scrape interval: publishing costs more than joining
_REPORT_SECONDS = 10


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
    placement = locality.placement(Machine.read(), why_not())
    capabilities = [*here.capabilities, placement, remote_accesses()]
    if arguments.json:
        plain = [asdict(each) for each in capabilities]
        _print_json({"capabilities": plain, "verified_instructions": instructions})
    else:
        _print(as_lines(capabilities))
    return 1 if missing(capabilities) else 0


def doctor(arguments: argparse.Namespace) -> int:
    """
    Say what this machine is, what on it lengthens tails or misleads, and which remedies can work.

    Exits with 1 when something makes measurements of this machine misleading.
    """
    targets = Processes(_settings(arguments)).scan().new
    found = physician.examine(pids=arguments.pid or [target.pid for target in targets])
    if arguments.json:
        _print_json(physician.as_dict(found))
    else:
        _print(physician.as_lines(found, arguments.full))
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
        _print_json(selftest_verdict.as_dict(rows))
    else:
        _print(selftest_verdict.as_lines(rows))
    return selftest_verdict.exit_code(rows)


def memory(arguments: argparse.Namespace) -> int:
    """
    Say on which NUMA nodes the targets' memory is, against where their threads run.

    Exits with 1 when something is misplaced, with 3 where nodes cannot be told. With --watch the
    last window decides, and those before it are what is usual.
    """
    settings = _settings(arguments)
    figures = Memory.here(settings, arguments.seconds, pace=0)
    if not figures.capability.available:
        raise UnavailableError(f"no telling where memory is: {figures.capability.reason}")
    targets, processes = [_target(pid) for pid in arguments.pid or ()], Processes(settings)
    stopped = _until(None)
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


def run(arguments: argparse.Namespace) -> int:
    """
    Trace until interrupted, or for --duration seconds; serve metrics; print the report.

    On a terminal a report is printed every 10 s. The last one is always printed.
    """
    settings = _settings(arguments)
    page, live = Page(interval_seconds=_PUBLISH_SECONDS), Live(platform.node())
    with Agent(settings) as agent, serving(settings.address, page, live) as (host, port):
        _say(f"tracing; look at http://{host}:{port}, metrics are at /metrics")
        if arguments.ready_file:
            _write(arguments.ready_file, f"{host}:{port}\n")

        def publish_families() -> None:
            families = tuple(agent.families())
            page.publish(families)
            live.record(families)

        publish = _every(_PUBLISH_SECONDS, publish_families, at_once=True)
        show = _every(_REPORT_SECONDS, lambda: _print([*reporter.report(agent.summary()), ""]))
        on_terminal = sys.stdout.isatty() and not arguments.quiet

        def every_second() -> None:
            publish()
            if live.wanted:
                live.publish(_describe(agent))
            if on_terminal:
                show()

        agent.run(_until(arguments.duration), every_second)
        summary = agent.summary()
    return _print_report(summary, arguments.json, agent.memory)


def record(arguments: argparse.Namespace) -> int:
    """
    Trace into a recording, until interrupted or for --duration seconds; print the report.

    What is in the file survives kill -9 and a full disk, but for the last 10 s.
    """
    settings = _settings(arguments)
    configuration = arguments.config.read_text() if arguments.config else ""
    with Agent(settings) as agent, Recorder(arguments.output, agent.meta(configuration)) as file:
        _say(f"recording to {arguments.output}")
        write = _every(WINDOW_SECONDS, lambda: file.write(agent.window()))
        agent.run(_until(arguments.duration), write)
        file.write(agent.window())
        summary = agent.summary()
    return _print_report(summary, arguments.json, agent.memory)


def report(arguments: argparse.Namespace) -> int:
    """
    Print the report of a recording: where the tail went, and who took it.
    """
    with Recording.open(arguments.recording) as recording:
        summary = recording.summary()
    return _print_report(summary, arguments.json)


def compare(arguments: argparse.Namespace) -> int:
    """
    Judge a migration by a recording before it and one after it.

    Exits with 0 when it passes, 1 when it fails, 3 when that cannot be told, with the reason.
    """
    wanted = criteria.load(arguments.criteria) if arguments.criteria else Criteria()
    with Recording.open(arguments.before) as before, Recording.open(arguments.after) as after:
        verdict = migration.compare(before, after, wanted)
    if arguments.html:
        _write(arguments.html, html.as_html(verdict))
    if arguments.json:
        _print_json(text.as_dict(verdict))
    else:
        _print([text.as_markdown(verdict)] if arguments.markdown else text.as_lines(verdict))
    return verdict.exit_code


def _target(pid: int) -> Target:
    try:
        process = Process.read(pid)
    except OSError as e:
        raise UsageError(f"no process {pid}: {e.strerror}; give the pid of one that runs") from e
    return Target(0, pid, process.started_ns, process.comm, process.comm)


def _describe(agent: Agent) -> Callable[[], Mapping[str, object]]:
    """What the page says besides its plots: of now, put into words by whoever asks for it."""
    summary, now_ns = agent.summary(), time.monotonic_ns()
    capabilities, pids = agent.capabilities, [target.pid for target in agent.targets]

    def describe() -> Mapping[str, object]:
        alive = [pid for pid in pids if psutil.pid_exists(pid)]
        return overview(summary, capabilities, physician.examine(pids=alive), now_ns)

    return describe


def _settings(arguments: argparse.Namespace) -> Config:
    return config.load(arguments.config) if arguments.config else Config()


def _until(seconds: float | None) -> Callable[[], bool]:
    """Whether the time is over, or somebody asked to stop."""
    end = time.monotonic() + seconds if seconds else float("inf")
    asked: list[int] = []
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda received, _: asked.append(received))
    return lambda: bool(asked) or time.monotonic() >= end


def _every(seconds: float, do: Callable[[], None], at_once: bool = False) -> Callable[[], None]:
    """What is called more often does something every so many seconds."""
    due = time.monotonic() + (0 if at_once else seconds)

    def maybe() -> None:
        nonlocal due
        if time.monotonic() >= due:
            due += seconds
            do()

    return maybe


def _say(words: str) -> None:
    """Progress, which is nobody's result."""
    print(f"tailtrace: {words}", file=sys.stderr)


def _print(lines: Iterable[str]) -> None:
    print("\n".join(lines), flush=True)


def _print_json(value: object) -> None:
    json.dump(value, sys.stdout, indent=2)
    print()


def _print_report(summary: Summary, as_json: bool, figures: Memory | None = None) -> int:
    """``figures`` are of an agent that has just run."""
    placement = figures.placement if figures else None
    if as_json:
        memory = placement and memory_report.as_dict(placement)
        _print_json(reporter.as_dict(summary) | ({"memory": memory} if figures else {}))
    else:
        of_memory = memory_report.section(placement, figures.capability) if figures else ()
        _print([*reporter.report(summary), *of_memory])
    return 0


def _print_placement(placement: Placement, as_json: bool) -> None:
    if as_json:
        _print_json(memory_report.as_dict(placement))
    else:
        _print([*memory_report.as_lines(placement), ""])


def _write(path: Path, content: str) -> None:
    try:
        path.write_text(content)
    except OSError as e:
        raise UsageError(f"{path}: cannot be written: {e.strerror}") from e
