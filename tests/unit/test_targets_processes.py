"""Which processes become targets, and when: on recorded /proc trees with a clock of the test."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tracer.config import Config, Kubelet, Match, Rule
from tracer.targets.pods import Pod
from tracer.targets.process import Process
from tracer.targets.processes import Processes

OURSELVES = 1
KERNEL_THREAD = 0x00200000
MARKED = Config()
SERVERS = Config(targets=(Rule(name="servers", match=Match(comm="serve*"), tenant="{comm}"),))


class Machine:
    """A /proc in which processes start, change and end, and a clock that goes when it is told."""

    def __init__(self, proc: Path) -> None:
        self.proc = proc
        self.now = 1000.0
        (proc / "self").symlink_to(str(OURSELVES))
        self.start(OURSELVES, "tailtrace")

    def start(
        self, pid: int, comm: str, age: float = 0.0, flags: int = 0, state: str = "S"
    ) -> None:
        directory = self.proc / str(pid)
        new = self.proc / f"new-{pid}"  # made beside the old one, so that its inode is another
        new.mkdir()
        ticks = int((self.now - age) * os.sysconf("SC_CLK_TCK"))
        numbers = f"{state} 1 1 1 0 -1 {flags} 0 0 0 0 5 5 0 0 20 0 1 0 {ticks} 4096 1"
        (new / "stat").write_bytes(f"{pid} ({comm}) {numbers}\n".encode())
        (new / "maps").write_text("")
        (new / "status").write_text(f"Uid:\t7\t8\t9\t10\nNSpid:\t{pid}\n")
        (new / "cmdline").write_bytes(b"/usr/bin/serve\0--port\x0080\0")
        (new / "cgroup").write_text("0::/system.slice/serve.service\n")
        (new / "environ").write_bytes(b"HOME=/\0")
        if directory.exists():
            shutil.rmtree(directory)
        new.rename(directory)

    def end(self, pid: int) -> None:
        shutil.rmtree(self.proc / str(pid))

    def watched_by(self, config: Config) -> Processes:
        return Processes(config, self.proc, lambda: self.now)


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    yield Machine(tmp_path)


def test_a_matching_process_is_new_once_and_gone_once(machine):
    processes = machine.watched_by(SERVERS)
    machine.start(20, "server", age=5)
    machine.start(21, "editor")

    (target,) = processes.scan().new
    assert (target.index, target.pid, target.name, target.tenant) == (1, 20, "server", "server")
    assert target.started_ns == 995_000_000_000
    assert processes.scan().new == []

    machine.end(20)
    assert [target] == processes.scan().gone
    assert processes.scan().gone == []


def test_a_reused_pid_is_another_process(machine):
    processes = machine.watched_by(SERVERS)
    machine.start(20, "server", age=5)
    (old,) = processes.scan().new
    machine.start(20, "server")

    changes = processes.scan()
    assert [old] == changes.gone
    (new,) = changes.new
    assert (new.pid, new.started_ns) == (20, 1_000_000_000_000)


def test_a_directory_that_the_kernel_made_anew_is_the_same_process(machine):
    processes = machine.watched_by(SERVERS)
    machine.start(20, "server", age=5)
    processes.scan()
    machine.start(20, "server", age=5)

    changes = processes.scan()
    assert (changes.new, changes.gone) == ([], [])


def test_a_process_is_looked_at_again_at_growing_ages_and_then_every_30_s(machine, monkeypatch):
    processes = machine.watched_by(SERVERS)
    machine.start(20, "shell")
    start, looks, read = machine.now, [], Process.read

    def note(pid: int, *arguments: Any) -> Process:
        looks.extend([round(machine.now - start, 1)] * (pid == 20))
        return read(pid, *arguments)

    monkeypatch.setattr(Process, "read", note)
    for tenth in range(950):
        machine.now = start + tenth / 10
        processes.scan()

    assert looks == [0.0, 0.2, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 60.0, 90.0]


class Pods:
    """What a kubelet has told, and whether it is being asked."""

    def __init__(self) -> None:
        self.known: dict[str, Pod] = {}
        self.asking = True

    def find(self, uid: str) -> Pod | None:
        return self.known.get(uid)

    def is_asking_for(self, uid: str) -> bool:
        return bool(uid) and self.asking and uid not in self.known


POD_UID = "1f0c6d27-3e6a-4b5c-9d8e-7a6b5c4d3e2f"
BY_LABEL = Config(
    targets=(Rule(name="chat", match=Match(labels="app=chat"), tenant="{namespace}"),),
    kubelet=Kubelet(host="127.0.0.1"),
)


def test_a_process_waits_for_what_the_kubelet_is_asked_about_its_pod(machine):
    pods = Pods()
    processes = Processes(BY_LABEL, machine.proc, lambda: machine.now, pods)
    machine.start(20, "serve", age=300)
    (machine.proc / "20/cgroup").write_text(f"0::/kubepods/pod{POD_UID}/{'0' * 64}\n")

    assert [] == processes.scan().new
    pods.known[POD_UID] = Pod("team-a", "chat-0", {"app": "chat"}, {})
    (target,) = processes.scan().new
    assert "team-a" == target.tenant


def test_a_process_does_not_wait_for_a_pod_that_nobody_knows(machine):
    pods = Pods()
    pods.asking = False
    machine.start(20, "server")
    (machine.proc / "20/cgroup").write_text(f"0::/kubepods/pod{POD_UID}/{'0' * 64}\n")

    assert Processes(SERVERS, machine.proc, lambda: machine.now, pods).scan().new


def test_a_label_that_changes_makes_it_another_target(machine):
    pods = Pods()
    pods.known[POD_UID] = Pod("team-a", "chat-0", {"app": "chat"}, {})
    processes = Processes(BY_LABEL, machine.proc, lambda: machine.now, pods)
    machine.start(20, "serve")
    (machine.proc / "20/cgroup").write_text(f"0::/kubepods/pod{POD_UID}/{'0' * 64}\n")
    (target,) = processes.scan().new

    pods.known[POD_UID] = Pod("team-a", "chat-0", {"app": "other"}, {})
    machine.now += 30
    assert [target] == processes.scan().gone


def test_a_process_that_executes_another_program_is_judged_anew(machine):
    processes = machine.watched_by(SERVERS)
    machine.start(20, "server")
    (old,) = processes.scan().new
    stat = machine.proc / "20/stat"
    stat.write_bytes(stat.read_bytes().replace(b"(server)", b"(gzip)"))

    assert processes.scan().gone == []
    machine.now += 0.25
    assert [old] == processes.scan().gone


@pytest.mark.parametrize("ended", [{"flags": KERNEL_THREAD}, {"state": "Z"}], ids=str)
def test_kernel_threads_and_zombies_are_no_targets(machine, ended):
    machine.start(20, "server", **ended)

    assert machine.watched_by(SERVERS).scan().new == []


def test_we_are_no_target_of_ourselves(machine):
    machine.start(OURSELVES, "server")

    assert machine.watched_by(SERVERS).scan().new == []


def test_a_comm_of_any_bytes_is_read_and_shown(machine):
    machine.start(20, "server) R (\n\x1b")

    (target,) = machine.watched_by(SERVERS).scan().new
    assert target.name == "server) R (\\n\\x1b"


def test_full_slots_are_counted_once_a_process_and_filled_when_one_is_free(machine):
    processes = machine.watched_by(SERVERS)
    for pid in range(2, 1027):
        machine.start(pid, "server")

    targets = processes.scan().new
    assert sorted(t.index for t in targets) == list(range(1, 1024))
    machine.now += 100
    assert processes.scan().new == []
    assert processes.losses["targets_full"] == 2

    machine.end(targets[0].pid)
    processes.scan()
    machine.now += 100
    (late,) = processes.scan().new
    assert late.index == targets[0].index


def test_what_may_not_be_read_is_counted(machine, monkeypatch):
    def refuse(_: Process) -> str:
        raise PermissionError

    monkeypatch.setattr(Process, "cmdline", property(refuse))
    machine.start(20, "server")
    rule = Rule(name="a", match=Match(cmdline="serve"))
    processes = machine.watched_by(Config(targets=(rule,)))

    assert processes.scan().new == []
    assert processes.losses["target_unreadable"] == 1


def test_any_process_is_described_by_comm_and_container(machine):
    machine.start(20, "gzip")
    (machine.proc / "20/cgroup").write_text(f"0::/system.slice/docker-{'ab' * 32}.scope\n")
    processes = machine.watched_by(MARKED)

    comm, container = processes.describe(20)
    assert (comm, container.name) == ("gzip", "docker:abababababab")
    assert processes.describe(21) is None
