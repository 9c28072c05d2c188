"""A forked child has a page of its own."""

from __future__ import annotations

from pathlib import Path

FORK = """
import os, signal
def in_child(run):
    done, tell = os.pipe()
    child = os.fork()
    if child == 0:
        run()
        os.write(tell, b".")
        signal.pause()
    os.read(done, 1)
    print(child)
    return child
"""


def mark_pages(pid):
    return [line for line in Path(f"/proc/{pid}/maps").read_text().splitlines() if "step" in line]


def test_the_child_lets_go_of_the_parents_page(python):
    engine = python(
        FORK + "import threading\n"
        "go_on, inside = threading.Event(), threading.Event()\n"
        "def other_thread():\n"
        "    with step('decode'):\n"
        "        inside.set()\n"
        "        go_on.wait()\n"
        "threading.Thread(target=other_thread).start()\n"
        "inside.wait()\n"
        "with step('decode'): child = in_child(lambda: None)\n"
        "pause()\nos.kill(child, 9)\ngo_on.set()"
    )
    (child,) = map(int, engine.said)

    assert (len(mark_pages(engine.pid)), mark_pages(child)) == (1, [])
    assert not [fd for fd in Path(f"/proc/{child}/fd").iterdir() if "step" in str(fd.readlink())]
    engine.go_on()


def test_the_child_marks_in_its_own_page_with_the_same_ids(python, reading):
    engine = python(
        FORK + "kept = step('kept', 'chat')\n"
        "def run():\n"
        "    with kept: pass\n"
        "    with step('new'): pass\n"
        "with step('decode', 'chat'):\n"
        "    child = in_child(run)\n"
        "pause()\nos.kill(child, 9)"
    )
    (child,) = map(int, engine.said)
    parents, childs = engine.page(), reading(child)

    assert [(it.number, it.kind) for it in parents.done()] == [(1, "decode")]
    assert [(it.number, it.kind) for it in childs.done()] == [(1, "kept"), (2, "new")]
    assert (engine.pid, child) == (parents.header(44), childs.header(44))
    assert childs.kinds() == [*parents.kinds(), "new"]
    assert childs.slot().tid == child
    engine.go_on()


def test_a_step_open_at_the_fork_is_the_parents_alone(python, reading):
    engine = python(
        FORK + "def run():\n"
        "    decode.__exit__()\n"
        "    with step('after'): pass\n"
        "decode = step('decode')\n"
        "with decode:\n"
        "    child = in_child(run)\n"
        "pause()\nos.kill(child, 9)"
    )
    (child,) = map(int, engine.said)
    childs = reading(child)

    assert [it.kind for it in engine.page().done()] == ["decode"]
    assert [(it.number, it.parent, it.kind) for it in childs.done()] == [(1, 0, "after")]
    engine.go_on()


def test_a_fork_while_another_thread_names_things_leaves_no_lock_behind(python):
    engine = python(
        "import os, signal, threading\n"
        "stop = threading.Event()\n"
        "def name():\n"
        "    number = 0\n"
        "    while not stop.is_set():\n"
        "        number += 1\n"
        "        with step(f'kind {number % 200}'): pass\n"
        "        stepmark.marks._steps.clear()\n"
        "thread = threading.Thread(target=name, daemon=True)\n"
        "thread.start()\n"
        "for number in range(50):\n"
        "    child = os.fork()\n"
        "    if child == 0:\n"
        "        signal.alarm(20)\n"
        "        with step(f'child {number}', 'chat'): pass\n"
        "        os._exit(0)\n"
        "    assert os.waitpid(child, 0)[1] == 0\n"
        "stop.set()\n"
        "thread.join()\n"
        "print('done')"
    )

    assert engine.said == ["done"]
