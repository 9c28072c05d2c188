"""The mark pages of living processes, written by ``stepmark`` itself."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tracer.config import Config, Match, Rule
from tracer.targets.mark_file import Refused
from tracer.targets.mark_page import MarkPage
from tracer.targets.processes import Changes, Processes, since_boot

ENGINE = """
import os, sys, stepmark
for line in sys.stdin:
    exec(line)
    print("done", flush=True)
"""
Engine = Callable[..., "Living"]


class Living:
    """A Python process that does line by line what it is told."""

    def __init__(self, *prefix: str) -> None:
        self.process = subprocess.Popen(
            [*prefix, sys.executable, "-c", ENGINE],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.do("pass")  # it runs now
        self.pid = self.children()[0] if prefix else self.process.pid

    def children(self) -> list[int]:
        file = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        return [int(pid) for pid in file.read_text().split()]

    def do(self, line: str) -> None:
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline() == "done\n"

    def end(self) -> None:
        self.process.communicate(timeout=10)


@pytest.fixture
def engine() -> Iterator[Engine]:
    started: list[Living] = []

    def start(*prefix: str) -> Living:
        started.append(Living(*prefix))
        return started[-1]

    yield start
    for living in started:
        living.end()


def unshare(*options: str) -> tuple[str, ...]:
    command = ("unshare", *options, "--fork")
    if (
        shutil.which("unshare") is None
        or subprocess.run([*command, "true"], check=False).returncode
    ):
        pytest.skip(f"{' '.join(command)} is not permitted here")
    return command


def test_steps_stages_and_waits_arrive_as_they_were_marked(engine):
    living = engine()
    living.do("stepmark.step('warm')")
    page = MarkPage.open(living.pid)
    living.do(
        "with stepmark.step('decode', {'chat': 9, 'batch': 1}), stepmark.stage('attend'): pass"
    )
    living.do("stepmark.queued(1, 'chat')")

    stage, step, wait = page.finished()
    assert [page.kinds[stage["kind"]], page.kinds[step["kind"]]] == ["attend", "decode"]
    assert stage["parent"] == step["number"]
    shares = [(page.tenants[tenant], weight) for tenant, weight in step["shares"][:2].tolist()]
    assert sorted(shares) == [("batch", 1), ("chat", 9)]
    assert (wait["begin_ns"], page.tenants[wait["shares"]["tenant"][0]]) == (1, "chat")
    assert dict(+page.losses) == {}
    page.close()


def test_a_step_that_is_under_way_is_running(engine):
    living = engine()
    living.do("step = stepmark.step('decode'); step.__enter__()")
    page = MarkPage.open(living.pid)

    (running,) = page.running()
    assert (page.kinds[running["kind"]], running["tid"]) == ("decode", living.pid)
    page.close()


def test_marks_can_be_read_after_the_process_is_gone(engine):
    living = engine()
    living.do("stepmark.step('decode')")
    page = MarkPage.open(living.pid)
    living.do("with stepmark.step('decode'): pass")
    living.end()

    assert len(page.finished()) == 1
    page.close()


def test_a_page_is_found_by_its_descriptor_where_map_files_may_not_be_followed(engine, tmp_path):
    living = engine()
    living.do("stepmark.step('decode')")
    (tmp_path / str(living.pid)).mkdir()
    for part in ("maps", "status", "fd"):
        (tmp_path / str(living.pid) / part).symlink_to(f"/proc/{living.pid}/{part}")

    MarkPage.open(living.pid, tmp_path).close()


def test_a_page_that_a_forked_child_still_has_mapped_is_not_its_own(engine):
    living = engine()
    living.do("stepmark.step('decode')")
    # A child that lets nobody know of the fork, as one of another language would.
    living.do("import ctypes; child = ctypes.CDLL(None).fork() or __import__('signal').pause()")
    (child,) = living.children()

    with pytest.raises(Refused) as refused:
        MarkPage.open(child)
    os.kill(child, signal.SIGKILL)
    assert refused.value.reason == "inherited"


def test_a_process_in_its_own_pid_namespace_is_read(engine):
    living = engine(*unshare("--pid"))
    living.do("assert os.getpid() == 1; stepmark.step('decode')")

    MarkPage.open(living.pid).close()


def test_a_process_with_another_clock_is_refused(engine):
    living = engine(*unshare("--time", "--monotonic", "1000"))
    living.do("stepmark.step('decode')")

    with pytest.raises(Refused) as refused:
        MarkPage.open(living.pid)
    assert refused.value.reason == "time_namespace"


class Watch:
    """Scans of this machine, with ten more seconds on the clock each time; one process only."""

    def __init__(self, config: Config, pid: int) -> None:
        self.pid, self.ahead = pid, 0.0
        self.processes = Processes(config, clock=lambda: since_boot() + self.ahead)

    def scan(self) -> Changes:
        self.ahead += 10
        changes = self.processes.scan()
        return Changes(
            *(
                [t for t in targets if t.pid == self.pid]
                for targets in (changes.gone, changes.new, changes.marked)
            )
        )


def test_a_process_is_a_target_when_it_has_mapped_its_page(engine):
    living = engine()
    watch = Watch(Config(), living.pid)
    assert watch.scan().new == []

    living.do("stepmark.step('decode')")
    changes = watch.scan()
    (target,) = changes.new
    assert [target] == changes.marked
    assert watch.scan() == Changes()

    living.end()
    assert [target] == watch.scan().gone


def test_a_target_by_its_name_gets_its_page_later(engine):
    living = engine()
    anybody = Rule(name="anybody", match=Match(cmdline="import os, sys, stepmark"))
    watch = Watch(Config(targets=(anybody,)), living.pid)
    (target,) = watch.scan().new

    living.do("stepmark.step('decode')")
    changes = watch.scan()
    assert ([], [target]) == (changes.new, changes.marked)


def test_a_process_that_executes_another_program_loses_its_page_and_is_none_any_more(engine):
    living = engine()
    living.do("stepmark.step('decode')")
    watch = Watch(Config(), living.pid)
    (target,) = watch.scan().new
    living.do("print('done', flush=True); os.execvp('cat', ['cat'])")
    while Path(f"/proc/{living.pid}/comm").read_text() != "cat\n":
        time.sleep(0.001)

    changes = watch.scan()
    assert ([target], []) == (changes.gone, changes.new)


def test_a_reused_pid_is_another_directory_in_proc():
    last_pid = Path("/proc/sys/kernel/ns_last_pid")
    if not os.access(last_pid, os.W_OK):
        pytest.skip("choosing a pid needs CAP_CHECKPOINT_RESTORE")
    pid, inode = short_lived()
    for _ in range(100):  # another process may take the number first
        last_pid.write_text(str(pid - 1))
        again, reused = short_lived()
        if again == pid:
            break

    assert (again, inode == reused) == (pid, False)


def short_lived() -> tuple[int, int]:
    """pid and inode in /proc of a process that has ended since."""
    process = subprocess.Popen(["sleep", "60"])
    inode = Path(f"/proc/{process.pid}").stat().st_ino
    process.kill()
    process.wait()
    return process.pid, inode
