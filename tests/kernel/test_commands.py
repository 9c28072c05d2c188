"""The commands as a user runs them, from a checkout and from a wheel."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
import venv
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.programs import running
from tests.unit.perfetto_reader import read

ROOT = Path(__file__).parents[2]
TAILTRACE = [sys.executable, "-m", "tracer.cli"]

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 and os.environ.get("KERNEL_TESTS") != "1", reason="needs root"
)


@pytest.fixture
def engine() -> Iterator[subprocess.Popen[bytes]]:
    """A process that marks steps of 2 ms until it is stopped."""
    code = (
        "import time, stepmark\n"
        "while True:\n"
        "    with stepmark.step('decode', tenants={'chat': 3, 'batch': 1}): time.sleep(0.002)\n"
    )
    with running(sys.executable, "-c", code) as process:
        yield process


@pytest.fixture
def config(tmp_path: Path) -> Path:
    file = tmp_path / "tailtrace.yaml"
    file.write_text(f"listen: 127.0.0.1:0\nhistory: {{directory: {tmp_path}/history}}\n")
    return file


def test_check_says_what_can_be_told() -> None:
    done = subprocess.run([*TAILTRACE, "check", "--json"], capture_output=True, check=True)

    told = json.loads(done.stdout)
    assert {"switch", "quota", "steal"} <= {each["name"] for each in told["capabilities"]}
    assert 0 < max(told["verified_instructions"].values()) < 1_000_000


def test_the_books_are_the_kernels_own(engine: subprocess.Popen[bytes], config: Path) -> None:
    command = [*TAILTRACE, "check", "--config", str(config), "--books", "3", "--json"]
    told = _json(*command)

    totals = {entry.pop("what"): entry for entry in told["totals"]}
    assert engine.pid in {thread["pid"] for thread in told["threads"]}
    assert totals["voluntary switches"]["kernel"] > 500
    for entry in totals.values():
        assert entry["traced"] == pytest.approx(entry["kernel"], abs=entry["allowed"])


def test_run_reports_and_serves(
    engine: subprocess.Popen[bytes], config: Path, tmp_path: Path
) -> None:
    ready = tmp_path / "ready"
    command = [*TAILTRACE, "run", "--config", str(config), "--ready-file", str(ready), "--json"]
    with subprocess.Popen([*command, "--duration", "9"], stdout=subprocess.PIPE) as tailtrace:
        address = _content(ready)
        time.sleep(7)
        page = urllib.request.urlopen(f"http://{address}/metrics").read().decode()
        out, _ = tailtrace.communicate(timeout=30)

    assert tailtrace.returncode == 0
    shares = {row["tenant"]: sum(row["seconds"].values()) for row in json.loads(out)["rows"]}
    assert shares["chat"] == pytest.approx(3 * shares["batch"], rel=0.01)
    for metric in (
        'tailtrace_deschedule_p999_seconds{tenant="chat"}',
        'tailtrace_step_elapsed_p999_p50_ratio{step="decode",tenant="chat"}',
    ):
        assert metric in page


def test_top_shows_the_last_seconds_over_and_over(
    engine: subprocess.Popen[bytes], config: Path
) -> None:
    command = [*TAILTRACE, "top", "--config", str(config), "--json"]
    timing = ["--interval", "1", "--duration", "3.5"]
    done = subprocess.run([*command, *timing], capture_output=True, check=True)

    shown = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(shown) == 3
    assert all({row["step"] for row in each["rows"]} == {"decode"} for each in shown[1:])
    assert all(each["steps"] > 100 for each in shown[1:])


def test_a_recording_is_reported_followed_and_explained(
    engine: subprocess.Popen[bytes], config: Path, tmp_path: Path
) -> None:
    file = tmp_path / "a.db"
    command = [*TAILTRACE, "record", "--config", str(config), "-o", str(file), "--json"]
    live = _json(*command, "--duration", "3")
    followed = _json(*TAILTRACE, "top", str(file), "--json")
    slowest = live["slowest"][0]
    explained = _json(*TAILTRACE, "explain", str(slowest["number"]), str(file), "--json")

    assert _json(*TAILTRACE, "report", str(file), "--json") == _close_to(live)
    assert followed["steps"] == live["steps"] > 100
    assert explained[0] == _close_to(slowest | {"ended_unix": explained[0]["ended_unix"]})
    assert time.time() - 60 < explained[0]["ended_unix"] < time.time()


def test_a_timeline_has_every_step_on_the_track_of_its_thread(
    engine: subprocess.Popen[bytes], config: Path, tmp_path: Path
) -> None:
    file = tmp_path / "trace.pftrace"
    command = [*TAILTRACE, "timeline", "--config", str(config), "-o", str(file), "--json"]
    told = _json(*command, "--duration", "3")

    tracks = read(file)
    comm = Path(f"/proc/{engine.pid}/comm").read_text().strip()
    (steps,) = tracks[f"{comm} {engine.pid}", f"thread {engine.pid}"]
    numbers = [step.details["step"] for step in steps]
    assert len(numbers) > 100
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
    assert all(step.end_ns - step.begin_ns > 2_000_000 for step in steps)
    assert told["drawn"] == sum(len(lane) for lanes in tracks.values() for lane in lanes)


def test_an_agent_leaves_its_history_that_says_what_it_said(
    engine: subprocess.Popen[bytes], config: Path
) -> None:
    with_config = ["--config", str(config), "--json"]
    live = _json(*TAILTRACE, "run", *with_config, "--duration", "3")
    slowest = live["slowest"][0]

    (explained,) = _json(*TAILTRACE, "explain", str(slowest["number"]), *with_config)

    assert _json(*TAILTRACE, "report", *with_config) == _close_to(live)
    assert explained == _close_to(slowest | {"ended_unix": explained["ended_unix"]})
    history = str(config.parent / "history/recent.db")
    now, then = (_json(*TAILTRACE, "check", *of, "--json") for of in ([], [history]))
    assert then["capabilities"] == now["capabilities"]
    now, then = (_json(*TAILTRACE, "doctor", *of, "--json") for of in ([], [history]))
    assert then["machine"]["topology"] == now["machine"]["topology"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_prints_its_report(
    engine: subprocess.Popen[bytes], config: Path, tmp_path: Path, number: signal.Signals
) -> None:
    ready = tmp_path / "ready"
    command = [*TAILTRACE, "run", "--config", str(config), "--ready-file", str(ready)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as tailtrace:
        _content(ready)
        time.sleep(2)
        tailtrace.send_signal(number)
        out, _ = tailtrace.communicate(timeout=30)

    assert tailtrace.returncode == 0
    assert "decode" in out


def test_an_agent_that_is_killed_leaves_nothing_in_the_kernel(
    engine: subprocess.Popen[bytes], config: Path, tmp_path: Path
) -> None:
    before, ready = _programs(), tmp_path / "ready"
    command = [*TAILTRACE, "run", "--config", str(config), "--ready-file", str(ready)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as tailtrace:
        _content(ready)
        loaded = _programs() - before
        tailtrace.kill()

    assert len(loaded) > 10
    assert _becomes_empty(lambda: loaded & _programs())


def test_a_wheel_traces_without_compiler_or_checkout(
    engine: subprocess.Popen[bytes], tmp_path: Path
) -> None:
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    wheels = tmp_path / "wheels"
    command = [*pip, "wheel", "--no-deps", "--wheel-dir", str(wheels), str(ROOT)]
    subprocess.run(command, check=True)
    venv.create(tmp_path / "venv", with_pip=True)
    (wheel,) = wheels.glob("tailtrace-*.whl")
    python = str(tmp_path / "venv/bin/python")
    subprocess.run([python, *pip[1:], "install", str(wheel)], check=True)
    (tmp_path / "tailtrace.yaml").write_text("listen: 127.0.0.1:0\n")
    tailtrace = str(tmp_path / "venv/bin/tailtrace")
    bare = {"cwd": tmp_path, "env": {"PATH": "/nonexistent"}, "stdout": subprocess.PIPE}

    check = subprocess.run([tailtrace, "check"], check=True, **bare)  # type: ignore[call-overload]
    assert b"WHAT IT TELLS" in check.stdout
    command = [tailtrace, "run", "--config", "tailtrace.yaml", "--duration", "4"]
    with subprocess.Popen([*command, "--ready-file", "ready"], **bare) as agent:  # type: ignore[call-overload]
        address = _content(tmp_path / "ready")
        page, library = (
            urllib.request.urlopen(f"http://{address}/{path}").read()
            for path in ("", "vendor/uPlot.iife.min.js")
        )
        out, _ = agent.communicate(timeout=30)
    assert b"tailtrace" in page
    assert b"uPlot" in library
    assert b"decode" in out


def _json(*command: str) -> Any:
    """Of a command that says yes or no."""
    done = subprocess.run(command, capture_output=True, check=False)
    assert done.returncode in (0, 1), done.stderr
    return json.loads(done.stdout)


def _close_to(value: Any) -> Any:
    """Equal to what has the same numbers, up to the rounding of sums in another order."""
    if isinstance(value, dict):
        return {key: _close_to(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_close_to(each) for each in value]
    return pytest.approx(value, rel=1e-9, abs=1e-12) if isinstance(value, float) else value


def _content(ready: Path) -> str:
    """Wait until tracing has begun; the address that metrics are served at."""
    end = time.monotonic() + 30
    while not (ready.exists() and ready.read_text().endswith("\n")):
        assert time.monotonic() < end, "tailtrace did not get ready"
        time.sleep(0.05)
    return ready.read_text().strip()


def _programs() -> set[int]:
    """Ids of the BPF programs in this kernel."""
    listed = subprocess.run(["bpftool", "-j", "prog", "list"], capture_output=True, check=True)
    return {program["id"] for program in json.loads(listed.stdout)}


def _becomes_empty(look: Callable[[], set[int]], seconds: float = 10) -> bool:
    end = time.monotonic() + seconds
    while look():
        if time.monotonic() > end:
            return False
        time.sleep(0.1)
    return True
