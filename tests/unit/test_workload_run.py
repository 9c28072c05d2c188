"""The RL workload as processes: what it reports, how it ends, and that nothing stays behind."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

from workloads.rl_sampling.account import Timed, read

ROOT = Path(__file__).parents[2]
Finished = tuple[dict[str, Any], list[Timed]]
SMALL = ("--hidden", "64", "--environments", "3")
ACTORS = Counter({"rl-inference": 1, "rl-sampler": 4})


@contextmanager
def workload(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-m", "workloads.rl_sampling", *SMALL, *arguments],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def eventually(condition: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.02)
    return False


def comm(process: psutil.Process) -> str:
    return Path(f"/proc/{process.pid}/comm").read_text().strip()


def actors_of(process: subprocess.Popen[str]) -> dict[str, psutil.Process]:
    """By name, once every actor has taken its name."""
    actors: dict[str, psutil.Process] = {}

    def all_there() -> bool:
        actors.clear()
        actors.update((comm(child), child) for child in psutil.Process(process.pid).children())
        return Counter(name.rstrip("-0123456789") for name in actors) == ACTORS

    assert eventually(all_there)
    return actors


def gone(actors: dict[str, psutil.Process]) -> bool:
    ended = eventually(lambda: not any(map(alive, actors.values())))
    for actor in filter(alive, actors.values()):
        actor.kill()  # what should not be there must not disturb other tests
    return ended


def alive(process: psutil.Process) -> bool:
    return process.is_running() and process.status() != psutil.STATUS_ZOMBIE


def segments_left() -> list[Path]:
    return list(Path("/dev/shm").glob("rl_sampling-*"))


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Finished:
    """The report and the truth of one short run that ended by itself."""
    truth = tmp_path_factory.mktemp("run") / "truth.jsonl"
    with workload("--duration", "2.5", "--json", "--truth", str(truth)) as process:
        out, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (0, "")
    with truth.open() as file:
        return json.loads(out), read(file)


def test_the_report_counts_what_the_truth_lists(finished: Finished) -> None:
    report, truth = finished
    counts = Counter(row.step for row in truth)

    assert {s["step"]: s["count"] for s in report["steps"] if s["tenant"] is None} == counts
    assert all(
        0 < s["p50_ms"] <= s["p99_ms"] <= s["p999_ms"] <= s["max_ms"] for s in report["steps"]
    )


def test_every_request_is_queued_served_and_answered_once(finished: Finished) -> None:
    requests: dict[str, Counter[str]] = {
        "sample": Counter(),
        "queued": Counter(),
        "infer": Counter(),
    }
    for row in finished[1]:
        if row.tenants:
            requests[row.step].update(row.tenants)

    assert requests["sample"] == requests["queued"] == requests["infer"]
    assert set(requests["infer"]) == {"policy-a", "policy-b"}


def test_stages_lie_in_their_step_one_after_the_other(finished: Finished) -> None:
    steps: list[Timed] = []
    stages: list[Timed] = []
    for row in finished[1]:
        if row.step in ("gather", "forward", "scatter"):
            stages.append(row)
        elif row.step == "infer":
            steps.append(row)

    assert [row.step for row in stages] == ["gather", "forward", "scatter"] * len(steps)
    for index, step in enumerate(steps):
        parts = stages[3 * index : 3 * index + 3]
        times = [time for part in parts for time in (part.begin_ns, part.end_ns)]
        times = [step.begin_ns, *times, step.end_ns]
        assert times == sorted(times)


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_with_its_account(stop: signal.Signals) -> None:
    with workload("--duration", "600") as process:
        actors = actors_of(process)
        process.send_signal(stop)
        out, err = process.communicate(timeout=60)

    assert (process.returncode, err) == (0, "")
    assert out.startswith("plain: 4 samplers")
    assert gone(actors)
    assert segments_left() == []


@pytest.mark.parametrize("victim", ["rl-sampler-2", "rl-inference"])
def test_the_death_of_an_actor_ends_the_run_and_says_who(victim: str) -> None:
    with workload("--duration", "600") as process:
        actors = actors_of(process)
        actors[victim].kill()
        _, err = process.communicate(timeout=60)

    assert process.returncode == 1
    assert f"(pid {actors[victim].pid}) ended early, killed by SIGKILL\n" in err
    assert gone(actors)
    assert segments_left() == []


def test_the_death_of_the_parent_takes_everything_with_it() -> None:
    with workload("--duration", "600") as process:
        actors = actors_of(process)
        process.kill()
        process.wait()

    assert gone(actors)
    assert segments_left() == []


def test_service_threads_have_names_and_cpus_of_their_own() -> None:
    """Isolated: nothing of ours on the CPU of the inference thread, whatever the machine's size."""
    available = psutil.Process().cpu_affinity() or []
    if len(available) < 2:
        pytest.skip("one CPU: there is nothing to isolate")
    with workload(
        "--duration", "600", "--variant", "isolated", "--service-threads", "3"
    ) as process:
        inference = actors_of(process)["rl-inference"].pid
        expected = {
            "rl-inference": [max(available)],
            **dict.fromkeys([f"grpc-worker-{n}" for n in range(3)], available[:-1]),
        }
        assert eventually(lambda: placed_threads(inference) == expected)


def placed_threads(pid: int) -> dict[str, list[int]]:
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return {
        (task / "comm").read_text().strip(): psutil.Process(int(task.name)).cpu_affinity() or []
        for task in tasks
    }
