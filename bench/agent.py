"""What the agent takes of a CPU and of memory while it traces a busy machine."""

from __future__ import annotations

import pstats
import re
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.load import Shape, compiled, cpu_ns, several, switches
from bench.spread import Spread
from bench.table import Row, Section
from tracer import catalog
from tracer.errors import UnavailableError

_ROOT = Path(__file__).parents[1]
_CONFIG = """\
listen: 127.0.0.1:0
targets: [{name: load, match: {marked: true, comm: load}}]
"""
_WARM_UP = 3.0  # seconds in which the agent finds the load and imports what it uses late
_SECONDS = 4.0  # of one round
_READY_WITHIN = 30.0

_FEW = (Shape(pairs=1, trips=50, hz=500), 2)
_MANY = (Shape(pairs=50, tenants=10, trips=50, hz=2), 10)
_METHOD = (
    "`tailtrace run` with the default windows, scraped once a round, under threads that play "
    "ping-pong in marked steps: {load}. CPU time by the process's CPU clock, in rounds "
    "of 4 s; median and quartiles over the rounds. What it is spent on is the time in each part "
    "under cProfile, in a run of its own, as a share of the CPU time measured without."
)
_PARTS = {  # function -> the module it is in
    "read": "agent.py",
    "join": "agent.py",
    "scan": "processes.py",
    "publish": "publishing.py",
}


def measure_busy(rounds: int, say: Callable[[str], None]) -> Section:
    load = "two processes of two threads, about 100,000 switches and 2,000 steps a second in all"
    return _section("Agent under load", load, _FEW, rounds, say)


def measure_crowd(rounds: int, say: Callable[[str], None]) -> Section:
    load = (
        "ten processes of 100 threads and 10 tenants each, so 1,000 threads and 100 tenants, at "
        "the same rates in all"
    )
    return _section("Agent with 100 tenants and 1,000 threads", load, _MANY, rounds, say)


def _section(
    title: str, load: str, shape: tuple[Shape, int], rounds: int, say: Callable[[str], None]
) -> Section:
    say(f"{title}: {rounds} rounds of {_SECONDS:g} s")
    with compiled("load") as program, several(program, *shape) as pids:
        with traced() as agent:
            time.sleep(_WARM_UP)
            windows = [_window(agent, pids) for _ in range(rounds)]
        if not any(window.steps for window in windows):
            raise UnavailableError("the agent saw no step of the load: are its objects up to date?")
        say(f"{title}: profile")
        shares = _profile(rounds * _SECONDS)
    return Section(title, _METHOD.format(load=load), rows(windows, shares))


@dataclass(frozen=True, slots=True)
class Agent:
    pid: int
    address: str

    def scrape(self) -> str:
        with urllib.request.urlopen(f"http://{self.address}/metrics", timeout=10) as page:
            text: str = page.read().decode()
        return text


@dataclass(frozen=True, slots=True)
class Window:
    """What happened in one round."""

    seconds: float
    agent_cpu_ns: int
    switches: int
    steps: float
    lost: float
    resident: Mapping[str, float]
    """MB at its end, as in ``resident``."""


@contextmanager
def traced(profile: Path | None = None) -> Iterator[Agent]:
    """``tailtrace run`` in a process of its own."""
    with TemporaryDirectory(prefix="tailtrace-bench-") as folder:
        config, ready = Path(folder) / "config.yaml", Path(folder) / "ready"
        config.write_text(_CONFIG)
        command = [sys.executable, "-m"]
        if profile:
            command += ["cProfile", "-o", str(profile), "-m"]
        command += ["tracer.cli", "run", "--config", str(config), "--quiet"]
        command += ["--ready-file", str(ready)]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, cwd=_ROOT) as process:
            try:
                yield Agent(process.pid, _address(process, ready))
            finally:
                process.send_signal(signal.SIGINT)


def _address(process: subprocess.Popen[bytes], ready: Path) -> str:
    end = time.monotonic() + _READY_WITHIN
    while process.poll() is None and time.monotonic() < end:
        if ready.exists() and (address := ready.read_text()).endswith("\n"):
            return address.strip()
        time.sleep(0.05)
    raise UnavailableError("the agent did not start")


def _window(agent: Agent, pids: Sequence[int]) -> Window:
    before, began = _reading(agent, pids), time.monotonic()
    time.sleep(_SECONDS)
    after, seconds = _reading(agent, pids), time.monotonic() - began
    return Window(
        seconds=seconds,
        agent_cpu_ns=after.cpu_ns - before.cpu_ns,
        switches=after.switches - before.switches,
        steps=total(after.page, f"{catalog.STEP_ELAPSED.name}_count")
        - total(before.page, f"{catalog.STEP_ELAPSED.name}_count"),
        lost=total(after.page, catalog.LOST.name) - total(before.page, catalog.LOST.name),
        resident=resident(Path(f"/proc/{agent.pid}/status").read_text()),
    )


@dataclass(frozen=True, slots=True)
class _Reading:
    page: str
    cpu_ns: int
    """Of the agent, the scrape included."""

    switches: int
    """Of the load."""


def _reading(agent: Agent, pids: Sequence[int]) -> _Reading:
    return _Reading(agent.scrape(), cpu_ns(agent.pid), sum(map(switches, pids)))


def total(page: str, series: str) -> float:
    """The sum over all label sets of a series on a metrics page."""
    values = re.findall(rf"^{series}(?:\{{.*\}})? (\S+)$", page, re.M)
    return sum(map(float, values))


def resident(status: str) -> dict[str, float]:
    """``VmRSS`` and what it consists of, in MB, from ``/proc/PID/status``."""
    found = re.findall(r"^(VmRSS|RssAnon|RssFile|RssShmem):\s*(\d+) kB$", status, re.M)
    return {name: int(kib) * 1024 / 1e6 for name, kib in found}


def _profile(seconds: float) -> dict[str, float]:
    """Part of the agent's CPU time -> its share, 0 to 1."""
    with TemporaryDirectory(prefix="tailtrace-bench-") as folder:
        path = Path(folder) / "profile"
        with traced(path):
            time.sleep(_WARM_UP + seconds)
        return shares(pstats.Stats(str(path)))


def shares(profile: pstats.Stats) -> dict[str, float]:
    """Of the time in the agent's loop that it did not sleep."""
    times = {
        (Path(file).name, function): cumulative
        for (file, _, function), (_, _, _, cumulative, _) in profile.stats.items()  # type: ignore[attr-defined]
    }
    slept = times["~", "<built-in method time.sleep>"]
    busy = times["agent.py", "run"] - slept
    return {part: times[file, part] / busy for part, file in _PARTS.items()}


def rows(windows: Sequence[Window], shares: Mapping[str, float]) -> list[Row]:
    cpu = Spread.quartiles([w.agent_cpu_ns / 1e7 / w.seconds for w in windows])
    parts = [
        Row(f"of it {part}", "%", Spread.exactly(cpu.median * share))
        for part, share in shares.items()
    ]
    memory = {name: Spread.quartiles([w.resident[name] for w in windows]) for name in _RESIDENT}
    return [
        Row("switches of the load", "/s", _rate([w.switches for w in windows], windows)),
        Row("steps joined", "/s", _rate([w.steps for w in windows], windows)),
        Row("lost, all reasons", "/s", _rate([w.lost for w in windows], windows)),
        Row("CPU of one core", "%", cpu, 1.0),
        *parts,
        Row("resident memory", "MB", memory.pop("VmRSS"), 60.0),
        *(Row(f"of it {_RESIDENT[name]}", "MB", spread) for name, spread in memory.items()),
    ]


_RESIDENT = {
    "VmRSS": "all",
    "RssAnon": "the agent's own",
    "RssFile": "libraries and BPF maps",
    "RssShmem": "mark pages",
}


def _rate(counts: Sequence[float], windows: Sequence[Window]) -> Spread:
    return Spread.quartiles([n / w.seconds for n, w in zip(counts, windows, strict=True)])
