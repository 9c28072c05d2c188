"""``tailtrace memory``: on this machine's own processes, with the nodes of a made one."""

from __future__ import annotations

import json
import os
import signal

import pytest

from tests.trees import planted
from tracer.cli import main
from tracer.host.machine import Machine


@pytest.fixture(autouse=True)
def signals():
    """As they were: the command takes them over."""
    numbers = signal.SIGINT, signal.SIGTERM
    before = [signal.getsignal(number) for number in numbers]
    yield
    for number, handler in zip(numbers, before, strict=True):
        signal.signal(number, handler)


@pytest.fixture
def on(monkeypatch):
    """The machine whose nodes are seen; processes and pages stay those of this one."""

    def on(name: str) -> None:
        machine = Machine.read(*planted(name))
        monkeypatch.setattr(Machine, "read", lambda *_: machine)

    return on


@pytest.mark.parametrize("name", ["kvm_guest", "flat_vm"])
def test_with_one_node_visible_nothing_is_told(on, capsys, name):
    on(name)

    assert main(["memory"]) == 3
    assert "no telling where memory is: one node visible" in capsys.readouterr().err


def test_a_process_on_node_0_has_its_memory_there(on, capsys):
    on("two_sockets")
    code = main(["memory", "--pid", str(os.getpid()), "--seconds", "0.3", "--json"])
    told = json.loads(capsys.readouterr().out)

    (process,) = told["processes"]
    assert process["pid"] == os.getpid()
    assert list(process["pages"]["by_node"]) == ["0"]
    assert process["pages"]["by_node"]["0"] > 1000
    assert (code, told["findings"]) == (0, [])


def test_for_people_it_is_a_screen(on, capsys):
    on("two_sockets")
    main(["memory", "--pid", str(os.getpid()), "--seconds", "0.3"])
    lines = capsys.readouterr().out.splitlines()

    assert lines[0].startswith("tailtrace: 1 process, ")
    assert any(line.startswith("PROCESS") for line in lines)


def test_a_pid_of_nobody_is_named(on, capsys):
    on("two_sockets")

    assert main(["memory", "--pid", "4194304"]) == 2
    assert "no process 4194304" in capsys.readouterr().err
